/* A small, fast MCP server on stdio, to measure clients against.
 *
 *   echo [--tools N] [--legacy]
 *
 * Speaks the handshake era and, unless --legacy is given, the stateless one. Tools: echo(text),
 * blob(size), progress(count), served() (how often tools/list was answered, so that a client's
 * cache cannot pass for speed), place(text) (a structured result); the others are only listed.
 * All answers to the requests of one read leave in one write. echo_server.py behaves the same.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_SIZE (256 * 1024)
#define FLUSH_AT (64 * 1024)
#define MAX_BLOB (1L << 30)
#define MODERN "2026-07-28"
#define LEGACY "2025-11-25"
#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"
#define SERVER_INFO "{\"name\":\"bench-echo\",\"version\":\"1.0\"}"
#define COMPLETE "\"resultType\":\"complete\""

typedef struct { const char *at; size_t len; } Slice;

typedef struct {
    Slice id, method, name, text, size, count, token, asked, modern;
} Request;

typedef struct { char *at; size_t len, room; } Buffer;

static Buffer out, tool_list, blob;
static int legacy_only;
static long lists_served;

/* ---- output ---------------------------------------------------------------------------- */

static void die(const char *why) { perror(why); exit(1); }

static void reserve(Buffer *b, size_t more) {
    if (b->len + more <= b->room) return;
    while (b->len + more > b->room) b->room = b->room ? b->room * 2 : 4096;
    b->at = realloc(b->at, b->room);
    if (!b->at) die("realloc");
}

static void put(Buffer *b, const char *data, size_t len) {
    reserve(b, len);
    memcpy(b->at + b->len, data, len);
    b->len += len;
}

static void puts_to(Buffer *b, const char *s) { put(b, s, strlen(s)); }

static void put_long(Buffer *b, long value) {
    char digits[24];
    put(b, digits, (size_t)snprintf(digits, sizeof digits, "%ld", value));
}

static void write_all(struct iovec *part, int parts) {
    while (parts) {
        ssize_t n = writev(1, part, parts);
        if (n < 0) {
            if (errno == EINTR) continue;
            exit(errno == EPIPE ? 0 : 1);
        }
        while (parts && (size_t)n >= part->iov_len) {
            n -= (ssize_t)part->iov_len;
            part++, parts--;
        }
        if (parts) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
        }
    }
}

static void flush_out(void) {
    struct iovec part = {out.at, out.len};
    if (out.len) write_all(&part, 1);
    out.len = 0;
}

/* ---- input: a tolerant walk over JSON, no tree ------------------------------------------ */

static const char *space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
    return p;
}

static const char *skip_string(const char *p, const char *end) { /* p is at the opening quote */
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\') p++;
    return p < end ? p + 1 : end;
}

static const char *skip_value(const char *p, const char *end) {
    int depth = 0;
    while (p < end) {
        if (*p == '"') {
            p = skip_string(p, end);
            if (!depth) return p;
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        else if (*p == '}' || *p == ']') {
            if (!depth) return p;
            if (!--depth) return p + 1;
        } else if (!depth && (*p == ',' || *p == ' ')) return p;
        p++;
    }
    return end;
}

/* The next key and value of the object that *p is in; 0 at its end. */
static int next_member(const char **p, const char *end, Slice *key, Slice *value) {
    const char *q = space(*p, end);
    if (q < end && (*q == '{' || *q == ',')) q = space(q + 1, end);
    if (q >= end || *q != '"') return 0;
    key->at = q + 1;
    q = skip_string(q, end);
    key->len = (size_t)(q - key->at) - 1;
    q = space(q, end);
    if (q >= end || *q != ':') return 0;
    q = space(q + 1, end);
    value->at = q;
    q = skip_value(q, end);
    value->len = (size_t)(q - value->at);
    *p = q;
    return 1;
}

static int is(Slice s, const char *word) {
    return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

static int is_text(Slice s, const char *word) { /* s is a JSON string, with its quotes */
    size_t n = strlen(word);
    return s.len == n + 2 && !memcmp(s.at + 1, word, n);
}

static int starts(Slice s, const char *word) {
    size_t n = strlen(word);
    return s.len > n && !memcmp(s.at + 1, word, n);
}

static long number(Slice s) {
    long value = 0;
    for (size_t i = 0; i < s.len && s.at[i] >= '0' && s.at[i] <= '9' && value < MAX_BLOB; i++)
        value = value * 10 + (s.at[i] - '0');
    return value < MAX_BLOB ? value : MAX_BLOB;
}

static void read_arguments(Slice object, Request *r) {
    const char *p = object.at, *end = p + object.len;
    for (Slice key, value; next_member(&p, end, &key, &value);) {
        if (is(key, "text")) r->text = value;
        else if (is(key, "size")) r->size = value;
        else if (is(key, "count")) r->count = value;
    }
}

static void read_meta(Slice object, Request *r) {
    const char *p = object.at, *end = p + object.len;
    for (Slice key, value; next_member(&p, end, &key, &value);) {
        if (is(key, "progressToken")) r->token = value;
        else if (is(key, VERSION_KEY)) r->modern = value;
    }
}

static void read_params(Slice object, Request *r) {
    const char *p = object.at, *end = p + object.len;
    for (Slice key, value; next_member(&p, end, &key, &value);) {
        if (is(key, "name")) r->name = value;
        else if (is(key, "arguments")) read_arguments(value, r);
        else if (is(key, "_meta")) read_meta(value, r);
        else if (is(key, "protocolVersion")) r->asked = value;
    }
}

static void read_request(const char *p, const char *end, Request *r) {
    for (Slice key, value; next_member(&p, end, &key, &value);) {
        if (is(key, "id")) r->id = value;
        else if (is(key, "method")) r->method = value;
        else if (is(key, "params")) read_params(value, r);
    }
}

/* ---- answers ---------------------------------------------------------------------------- */

static void begin(const Request *r) { /* up to where the result's own members start */
    puts_to(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put(&out, r->id.at, r->id.len);
    puts_to(&out, ",\"result\":{");
    if (r->modern.len) puts_to(&out, COMPLETE ",");
}

static void answer(const Request *r, const char *members) {
    begin(r);
    puts_to(&out, members);
    puts_to(&out, "}}\n");
}

static void refuse(const Request *r, long code, const char *message) {
    puts_to(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put(&out, r->id.at, r->id.len);
    puts_to(&out, ",\"error\":{\"code\":");
    put_long(&out, code);
    puts_to(&out, ",\"message\":\"");
    puts_to(&out, message);
    puts_to(&out, "\"}}\n");
}

static void initialize(const Request *r) {
    static const char *known[] = {"2024-11-05", "2025-03-26", "2025-06-18", LEGACY};
    const char *version = LEGACY;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_text(r->asked, known[i])) version = known[i];
    begin(r);
    puts_to(&out, "\"protocolVersion\":\"");
    puts_to(&out, version);
    puts_to(&out, "\",\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER_INFO "}}\n");
}

static void discover(const Request *r) {
    if (legacy_only) {
        refuse(r, -32601, "Method not found");
        return;
    }
    answer(r, "\"supportedVersions\":[\"" MODERN "\",\"" LEGACY "\"],"
              "\"capabilities\":{\"tools\":{}},\"ttlMs\":0,\"cacheScope\":\"public\","
              "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO "}");
}

static void ping(const Request *r) {
    puts_to(&out, "{\"jsonrpc\":\"2.0\",\"id\":");
    put(&out, r->id.at, r->id.len);
    puts_to(&out, r->modern.len ? ",\"result\":{" COMPLETE "}}\n" : ",\"result\":{}}\n");
}

static void list_tools(const Request *r) {
    lists_served++;
    begin(r);
    if (r->modern.len) puts_to(&out, "\"ttlMs\":0,\"cacheScope\":\"public\",");
    put(&out, tool_list.at, tool_list.len);
    puts_to(&out, "}}\n");
}

static void call_echo(const Request *r) {
    begin(r);
    puts_to(&out, "\"content\":[{\"type\":\"text\",\"text\":");
    if (r->text.len && *r->text.at == '"') put(&out, r->text.at, r->text.len);
    else puts_to(&out, "\"hello\"");
    puts_to(&out, "}]}}\n");
}

static void build_blob(size_t size) {
    static const char line[] = "the quick brown fox jumps over the lazy dog 0123456789 ";
    if (blob.len == size) return;
    blob.len = 0;
    reserve(&blob, size);
    while (blob.len < size) {
        size_t left = size - blob.len;
        put(&blob, line, left < sizeof line - 1 ? left : sizeof line - 1);
    }
}

static void call_blob(const Request *r) { /* written from where it lies, not copied */
    static char tail[] = "\"}]}}\n";
    build_blob((size_t)number(r->size));
    begin(r);
    puts_to(&out, "\"content\":[{\"type\":\"text\",\"text\":\"");
    struct iovec parts[] = {
        {out.at, out.len}, {blob.at, blob.len}, {tail, sizeof tail - 1}};
    write_all(parts, 3);
    out.len = 0;
}

static void call_progress(const Request *r) {
    long count = number(r->count);
    for (long i = 1; r->token.len && i <= count; i++) {
        puts_to(&out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                      "\"params\":{\"progressToken\":");
        put(&out, r->token.at, r->token.len);
        puts_to(&out, ",\"progress\":");
        put_long(&out, i);
        puts_to(&out, ",\"total\":");
        put_long(&out, count);
        puts_to(&out, "}}\n");
        if (out.len >= FLUSH_AT) flush_out();
    }
    answer(r, "\"content\":[{\"type\":\"text\",\"text\":\"done\"}]");
}

static void call_served(const Request *r) {
    begin(r);
    puts_to(&out, "\"content\":[{\"type\":\"text\",\"text\":\"");
    put_long(&out, lists_served);
    puts_to(&out, "\"}]}}\n");
}

static void call_place(const Request *r) {
    begin(r);
    puts_to(&out, "\"content\":[{\"type\":\"text\",\"text\":\"a place\"}],"
                  "\"structuredContent\":{\"name\":");
    if (r->text.len && *r->text.at == '"') put(&out, r->text.at, r->text.len);
    else puts_to(&out, "\"hello\"");
    puts_to(&out, ",\"latitude\":53.5,\"tags\":[\"harbour\",\"old\"]}}}\n");
}

static void call_tool(const Request *r) {
    if (is_text(r->name, "echo")) call_echo(r);
    else if (is_text(r->name, "blob")) call_blob(r);
    else if (is_text(r->name, "progress")) call_progress(r);
    else if (is_text(r->name, "served")) call_served(r);
    else if (is_text(r->name, "place")) call_place(r);
    else refuse(r, -32602, "Unknown tool");
}

static void handle(const char *line, const char *end) {
    Request r = {0};
    read_request(line, end, &r);
    if (!r.method.len || !r.id.len || starts(r.method, "notifications/")) return;
    if (legacy_only) r.modern.len = 0;
    if (is_text(r.method, "tools/call")) call_tool(&r);
    else if (is_text(r.method, "tools/list")) list_tools(&r);
    else if (is_text(r.method, "initialize")) initialize(&r);
    else if (is_text(r.method, "server/discover")) discover(&r);
    else if (is_text(r.method, "ping")) ping(&r);
    else refuse(&r, -32601, "Method not found");
}

/* ---- the list of tools: built once ------------------------------------------------------- */

static const char REAL_TOOL[] =
    "{\"name\":\"%s\",\"description\":\"%s\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
    "{\"%s\":{\"type\":\"%s\",\"description\":\"%s\"}}}%s}";

static const char PLACE[] =
    ",\"outputSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},"
    "\"latitude\":{\"type\":\"number\"},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
    "\"required\":[\"name\",\"latitude\",\"tags\"]}";

static const char LISTED_TOOL[] =
    "{\"name\":\"records_%04d_search\",\"title\":\"Search records %d\",\"description\":"
    "\"Search the records of collection %d and return those that match, newest first.\","
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"query\":{\"type\":\"string\",\"description\":\"Words to look for\",\"minLength\":1},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":20},"
    "\"order\":{\"type\":\"string\",\"enum\":[\"asc\",\"desc\"]},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"archived\":{\"type\":\"boolean\",\"description\":\"Also those put away\"}},"
    "\"required\":[\"query\"],\"additionalProperties\":false},"
    "\"annotations\":{\"readOnlyHint\":true,\"openWorldHint\":false}}";

static const char *const REAL[][6] = {
    {"echo", "Return the text that it is given.", "text", "string", "What to return", ""},
    {"blob", "Return a text of a given size.", "size", "integer", "How many bytes", ""},
    {"progress", "Report progress, then end.", "count", "integer", "How many reports", ""},
    {"served", "Say how often the tools were listed.", "unused", "string", "Not looked at", ""},
    {"place", "Return a place as a structured result.", "text", "string", "Its name", PLACE},
};

static void build_list(int tools) {
    char one[2048];
    int real = (int)(sizeof REAL / sizeof *REAL);
    puts_to(&tool_list, "\"tools\":[");
    for (int i = 0; i < tools; i++) {
        const char *const *t = REAL[i < real ? i : 0];
        if (i) puts_to(&tool_list, ",");
        if (i < real) snprintf(one, sizeof one, REAL_TOOL, t[0], t[1], t[2], t[3], t[4], t[5]);
        else snprintf(one, sizeof one, LISTED_TOOL, i, i, i);
        puts_to(&tool_list, one);
    }
    puts_to(&tool_list, "]");
}

/* ---- the loop ---------------------------------------------------------------------------- */

static size_t handle_lines(char *data, size_t len) { /* how much was used */
    char *at = data, *end = data + len, *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
        handle(at, newline);
        if (out.len >= FLUSH_AT) flush_out();
        at = newline + 1;
    }
    flush_out();
    return (size_t)(at - data);
}

int main(int argc, char **argv) {
    int tools = 8;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--legacy")) legacy_only = 1;
        else if (!strcmp(argv[i], "--tools") && i + 1 < argc) tools = atoi(argv[++i]);
    }
    build_list(tools);
    Buffer in = {0};
    for (;;) {
        reserve(&in, READ_SIZE);
        ssize_t n = read(0, in.at + in.len, in.room - in.len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        in.len += (size_t)n;
        size_t used = handle_lines(in.at, in.len);
        in.len -= used;
        if (in.len && used) memmove(in.at, in.at + used, in.len);
    }
}
