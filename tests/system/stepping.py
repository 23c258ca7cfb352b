"""Programs whose wall clock is another than that of the host (stepping_clock.c), and a Redis whose clock a test steps."""

import os
import pathlib
import struct
import subprocess

import peers

SOURCE = pathlib.Path(__file__).with_name("stepping_clock.c")


def build_clock(folder):
    library = folder / "stepping_clock.so"
    if not library.exists():
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-shared", "-fPIC",
                        "-o", library, SOURCE], check=True)
    return library


def write(path, ahead_s):
    """Of one piece: a program has the file mapped."""
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.write(struct.pack("=q", ahead_s))


def skew(path, library_folder, ahead_s):
    """What a program must have in its environment for its wall clock to be ahead by so much."""
    write(path, ahead_s)
    return {"LD_PRELOAD": str(build_clock(library_folder)), "STEPPING_CLOCK": str(path),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


class SteppingRedis(peers.RedisServer):
    """Its wall clock is ahead of the true one by step()."""

    def __init__(self, folder, library):
        super().__init__(folder)
        self.library = library

    def command(self):
        self.step(0)
        return ["env", f"LD_PRELOAD={self.library}", f"STEPPING_CLOCK={self.folder}/clock", *super().command()]

    def step(self, ahead_s):
        write(self.folder / "clock", ahead_s)
