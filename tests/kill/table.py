"""What a run showed, as the rows of a table: kills by point, what had become of the operations that they cut off, and how
long it took until the world was as if they had never been."""

import collections
import json


class Table:
    """Made from the oracle's lines. `server`: the point that is the server's: it leaves nothing, but is away."""

    def __init__(self, lines, server):
        self.lines, self.server = lines, server
        self.gone = collections.defaultdict(list)
        for line in lines:
            if "gone" in line:
                self.gone[line["gone"]].append(line["t"])

    def recovery_s(self, kill):
        """Until all that it left was gone; None if it left nothing."""
        if kill["killed"] == self.server:
            return self._outage_s(kill)
        ends = [next(t for t in self.gone[thing] if t >= kill["t"]) for thing in kill["left"]]
        return max(ends) - kill["t"] if ends else None

    def _outage_s(self, kill):
        """Until an operation went well that began after it; None if there was none."""
        began = {line["intent"] for line in self.lines if "intent" in line and line["t"] > kill["t"]}
        ends = (line["t"] for line in self.lines if line.get("verdict") == "ok" and line.get("outcome") in began)
        end = next(ends, None)
        return end and end - kill["t"]

    def rows(self):
        rows = {}
        for kill in (line for line in self.lines if "killed" in line):
            row = rows.setdefault(kill["killed"], {"ok": 0, "failed": 0, "unknown": 0, "recoveries_ms": []})
            row[kill["verdict"]] += 1
            seconds = self.recovery_s(kill)
            if seconds is not None:
                row["recoveries_ms"].append(round(seconds * 1000))
        return rows

    def write(self, path, points, seed, **figures):
        """For tools/kill_table. The rows are in the order of `points`."""
        rows = self.rows()
        path.write_text(json.dumps({"seed": seed, "rows": {point: rows[point] for point in points if point in rows},
                                    "figures": figures}, indent=1) + "\n")
