-- What a script may use on the server: less than Lua 5.1 offers. Not listed on purpose: math.random (replicas and
-- tests need the same result twice), tostring (%.14g loses counts; use string.format with %.0f or %.17g).
stds.redis = {
    globals = {},
    read_globals = {
        "KEYS", "ARGV", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "type", "unpack",
        redis = { fields = { "call", "pcall", "error_reply", "status_reply", "log", "LOG_WARNING", "LOG_NOTICE" } },
        string = { fields = { "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep",
                              "sub", "upper" } },
        table = { fields = { "concat", "insert", "remove" } },
        math = { fields = { "abs", "ceil", "floor", "fmod", "huge", "max", "min" } },
        cjson = { fields = { "encode", "decode", "null", "empty_array" } },
        cmsgpack = { fields = { "pack", "unpack" } },
    },
}
std = "redis"
max_line_length = 120
