/* Preloaded into a server: makes chosen calls fail on files whose path holds a given text.
 *
 * The file named by FAILING holds one line, read again at each call, so that a test arms it whenever it likes:
 *
 *     CALL NUMBER TIMES ERRNO PATH        fdatasync 1 1 5 /inboxes/
 *
 * The NUMBERth such call from then on and the TIMES - 1 after it answer -1 with that errno, without doing anything.
 * An empty or missing file arms nothing. What has failed is appended, a line each, to the file $FAILING.failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char armed[512];
static long seen;

static int (*real_open)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);

__attribute__((constructor)) static void find(void) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_write = dlsym(RTLD_NEXT, "write");
}

static void read_line(const char *file, char *line, size_t size) {
    int fd = real_open(file, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, line, size - 1);
    if (fd >= 0) close(fd);
    line[length < 0 ? 0 : length] = 0;
}

/* Whether this call is to fail; errno is set then. */
static int fails(const char *call, const char *path) {
    const char *file = getenv("FAILING");
    if (file == NULL || path == NULL || strstr(path, file) != NULL) return 0;
    char line[512], which[32], part[256];
    long number, times, error;
    int failed = 0;
    pthread_mutex_lock(&lock);
    read_line(file, line, sizeof line);
    if (strcmp(line, armed) != 0) {
        strcpy(armed, line);
        seen = 0;
    }
    if (sscanf(line, "%31s %ld %ld %ld %255s", which, &number, &times, &error, part) == 5 && strcmp(which, call) == 0 &&
        strstr(path, part) != NULL && ++seen >= number && seen < number + times) {
        char report[PATH_MAX + 64], name[PATH_MAX];
        snprintf(name, sizeof name, "%s.failed", file);
        int length = snprintf(report, sizeof report, "%s %s\n", call, path);
        int fd = real_open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd >= 0) {
            if (real_write(fd, report, (size_t)length) < 0) abort();
            close(fd);
        }
        failed = (int)error;
    }
    pthread_mutex_unlock(&lock);
    if (failed) errno = failed;
    return failed;
}

/* The path behind a descriptor, or NULL. */
static const char *path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    return path;
}

#define ON_DESCRIPTOR(type, name, parameters, arguments)                    \
    type name parameters {                                                  \
        static type(*real) parameters;                                      \
        char path[PATH_MAX];                                                \
        if (real == NULL) real = dlsym(RTLD_NEXT, #name);                   \
        if (fails(#name, path_of(fd, path))) return -1;                     \
        return real arguments;                                              \
    }

ON_DESCRIPTOR(int, fdatasync, (int fd), (fd))
ON_DESCRIPTOR(int, fsync, (int fd), (fd))
ON_DESCRIPTOR(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))

static int opened(const char *path, int flags, mode_t mode) {
    /* Only what is opened to be written, or made: a store that cannot read its files is another fault. */
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
    return writes && fails("open", path) ? -1 : real_open(path, flags, mode);
}

#define OPENS(name)                                     \
    int name(const char *path, int flags, ...) {        \
        va_list more;                                   \
        va_start(more, flags);                          \
        mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0; \
        va_end(more);                                   \
        return opened(path, flags, mode);               \
    }

OPENS(open)
OPENS(open64)

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (real == NULL) real = dlsym(RTLD_NEXT, "rename");
    return fails("rename", to) ? -1 : real(from, to);
}
