/* Faults of a disk, for tests: loaded with LD_PRELOAD, it sees every file operation below one directory.
 *
 * Operations are written to a journal, one line each, and obey rules that the process sets for itself through the
 * functions at the end of this file (see disk.py). Calls reach the kernel by `syscall`, so that nothing here is
 * intercepted again. Rust's tempfile renames without libc; that one system call is caught by a seccomp filter.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum action { NONE, FAIL, SHORT, STALL, KILL, STOP };
#define RULES 16
#define FULL 64

struct rule {
    char operation[16], glob[PATH_MAX];
    int occurrence, sticky, seen, fired;
    enum action action;
    double value; /* an errno, or seconds */
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static char graves[PATH_MAX]; /* empty, or where removed files are kept */
static volatile int awake; /* is there a root? */
static int journal = -1;
static struct rule rules[RULES];
static int rule_count;
static ino_t full[FULL]; /* files that take no more bytes after a short write */
static int full_count;
static volatile int renames_caught;

/* What an operation is about. */
struct place {
    char path[PATH_MAX];
    ino_t inode;
};

static int below_root(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static const char *inside(const char *path) { return path[root_length] == '/' ? path + root_length + 1 : ""; }

static int place_of_descriptor(int descriptor, struct place *place) {
    char link[64];
    struct stat status;
    if (!awake || descriptor < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, place->path, sizeof place->path - 1);
    if (length <= 0) return 0;
    place->path[length] = 0;
    if (!below_root(place->path)) return 0;
    place->inode = fstat(descriptor, &status) == 0 ? status.st_ino : 0;
    return 1;
}

static int place_of_path(int folder, const char *path, struct place *place) {
    struct stat status;
    char base[PATH_MAX];
    if (!awake || !path) return 0;
    if (path[0] == '/') {
        snprintf(place->path, sizeof place->path, "%s", path);
    } else {
        char link[64] = "/proc/self/cwd";
        if (folder != AT_FDCWD) snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t length = readlink(link, base, sizeof base - 1);
        if (length <= 0) return 0;
        base[length] = 0;
        if (strcmp(path, ".") == 0) path = "";
        if (snprintf(place->path, sizeof place->path, "%s/%s", base, path) >= (int)sizeof place->path) return 0;
    }
    for (size_t end = strlen(place->path); end > 1 && place->path[end - 1] == '/';) place->path[--end] = 0;
    if (!below_root(place->path)) return 0;
    place->inode = lstat(place->path, &status) == 0 ? status.st_ino : 0;
    return 1;
}

static void note(const char *operation, const struct place *place, const struct place *to, long result, int fault) {
    static char line[2 * PATH_MAX + 200];
    int reason = result < 0 ? errno : 0, kept = errno;
    if (journal >= 0) {
        pthread_mutex_lock(&turn);
        int length = snprintf(line, sizeof line, "%s\t%lu\t%ld\t%d\t%d\t%s\t%s\t%lu\n", operation,
                              (unsigned long)place->inode, result, reason, fault, inside(place->path),
                              to ? inside(to->path) : "", (unsigned long)(to ? to->inode : 0));
        syscall(SYS_write, journal, line, (size_t)length);
        pthread_mutex_unlock(&turn);
    }
    errno = kept;
}

static int one_of(const char *operation, const char *list) {
    const char *found = strstr(list, operation);
    return found && (found == list || found[-1] == ' ') && strchr(" ", found[strlen(operation)]) != NULL;
}

/* Does a rule speak of an operation? Some rules speak of a family of them. */
static int concerns(const struct rule *rule, const char *operation, const char *path) {
    const char *asked = rule->operation;
    if (strcmp(asked, "room") == 0) asked = "create write mkdir rename link";
    else if (strcmp(asked, "descriptor") == 0) asked = "open create reopen list";
    else if (strcmp(asked, "change") == 0) asked = "create reopen write sync truncate rename link unlink mkdir rmdir";
    else if (strcmp(asked, "anything") == 0) asked = operation;
    return one_of(operation, asked) && (strcmp(rule->glob, "**") == 0 || fnmatch(rule->glob, path, FNM_PATHNAME) == 0);
}

static void wait_for(double seconds) {
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* What is to happen to an operation: NONE, SHORT, or FAIL with errno set. The rest is done here. */
static enum action verdict(const char *operation, const struct place *place) {
    enum action found = NONE;
    double value = 0;
    pthread_mutex_lock(&turn);
    for (int i = 0; i < rule_count && found == NONE; i++) {
        struct rule *rule = &rules[i];
        if (!concerns(rule, operation, inside(place->path))) continue;
        rule->seen++;
        if (rule->seen == rule->occurrence || (rule->sticky && rule->seen > rule->occurrence)) {
            found = rule->action;
            value = rule->value;
            rule->fired++;
        }
    }
    if (found == NONE && strcmp(operation, "write") == 0)
        for (int i = 0; i < full_count; i++)
            if (full[i] == place->inode) found = FAIL, value = ENOSPC;
    if (found == SHORT && full_count < FULL) full[full_count++] = place->inode;
    pthread_mutex_unlock(&turn);
    if (found == KILL || found == STOP) {
        note(operation, place, NULL, -1, found); /* the last thing the process was about to do */
        kill(getpid(), found == KILL ? SIGKILL : SIGSTOP);
        if (found == KILL) pause();
    }
    if (found == STALL) wait_for(value);
    if (found == FAIL) errno = (int)value;
    return found == SHORT || found == FAIL ? found : NONE;
}

/* An operation on a path or a descriptor that either fails or happens. */
#define ON_PATH(operation, folder, path, call)                                           \
    struct place place;                                                                  \
    if (!place_of_path(folder, path, &place)) return (int)(call);                        \
    int fault = verdict(operation, &place) != NONE;                                      \
    int result = fault ? -1 : (int)(call);                                               \
    note(operation, &place, NULL, result, fault);                                        \
    return result;

static int opened(int folder, const char *path, int flags, mode_t mode) {
    struct place place;
    if (!place_of_path(folder, path, &place)) return (int)syscall(SYS_openat, folder, path, flags, mode);
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    const char *write = !place.inode ? "create" : flags & O_TRUNC ? "truncate" : "reopen";
    const char *operation = flags & O_DIRECTORY ? "list" : writes ? write : "open";
    int fault = verdict(operation, &place) != NONE;
    int result = fault ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
    struct stat status;
    if (result >= 0 && fstat(result, &status) == 0) place.inode = status.st_ino;
    note(operation, &place, NULL, result, fault);
    return result;
}

#define MODE(flags, after)                                                               \
    mode_t mode = 0;                                                                     \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                               \
        va_list rest;                                                                    \
        va_start(rest, after);                                                           \
        mode = (mode_t)va_arg(rest, int);                                                \
        va_end(rest);                                                                    \
    }

int open(const char *path, int flags, ...) { MODE(flags, flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags, flags) return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags, flags) return opened(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

DIR *opendir(const char *path) {
    static DIR *(*original)(const char *);
    struct place place;
    if (!original) *(void **)&original = dlsym(RTLD_NEXT, "opendir");
    if (!place_of_path(AT_FDCWD, path, &place)) return original(path);
    int fault = verdict("list", &place) != NONE;
    DIR *result = fault ? NULL : original(path);
    note("list", &place, NULL, result ? 0 : -1, fault);
    return result;
}

#define TRANSFER(operation, descriptor, size, call, shortened)                           \
    struct place place;                                                                  \
    if (!place_of_descriptor(descriptor, &place)) return (ssize_t)(call);                \
    enum action fault = verdict(operation, &place);                                      \
    size_t half = (size) / 2;                                                            \
    if (fault == SHORT && half == 0) fault = FAIL, errno = ENOSPC;                       \
    ssize_t result = fault == FAIL ? -1 : (ssize_t)(fault == SHORT ? (shortened) : (call)); \
    note(operation, &place, NULL, result, fault != NONE);                                \
    return result;

ssize_t write(int descriptor, const void *bytes, size_t size) {
    TRANSFER("write", descriptor, size, syscall(SYS_write, descriptor, bytes, size),
             syscall(SYS_write, descriptor, bytes, half))
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at) {
    TRANSFER("write", descriptor, size, syscall(SYS_pwrite64, descriptor, bytes, size, at),
             syscall(SYS_pwrite64, descriptor, bytes, half, at))
}
ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t at) { return pwrite64(descriptor, bytes, size, at); }
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    TRANSFER("write", descriptor, count > 0 ? parts[0].iov_len : 0, syscall(SYS_writev, descriptor, parts, count),
             syscall(SYS_write, descriptor, parts[0].iov_base, half))
}
ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t at) {
    TRANSFER("write", descriptor, count > 0 ? parts[0].iov_len : 0,
             syscall(SYS_pwritev, descriptor, parts, count, at, 0),
             syscall(SYS_pwrite64, descriptor, parts[0].iov_base, half, at))
}
ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t at) { return pwritev64(descriptor, parts, count, at); }
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t size, unsigned flags) {
    TRANSFER("write", out, size, syscall(SYS_copy_file_range, in, from, out, to, size, flags),
             syscall(SYS_copy_file_range, in, from, out, to, half, flags))
}
ssize_t sendfile64(int out, int in, off64_t *from, size_t size) {
    TRANSFER("write", out, size, syscall(SYS_sendfile, out, in, from, size), syscall(SYS_sendfile, out, in, from, half))
}
ssize_t sendfile(int out, int in, off_t *from, size_t size) { return sendfile64(out, in, from, size); }

ssize_t read(int descriptor, void *bytes, size_t size) {
    TRANSFER("read", descriptor, size, syscall(SYS_read, descriptor, bytes, size),
             syscall(SYS_read, descriptor, bytes, half))
}
ssize_t pread64(int descriptor, void *bytes, size_t size, off64_t at) {
    TRANSFER("read", descriptor, size, syscall(SYS_pread64, descriptor, bytes, size, at),
             syscall(SYS_pread64, descriptor, bytes, half, at))
}
ssize_t pread(int descriptor, void *bytes, size_t size, off_t at) { return pread64(descriptor, bytes, size, at); }

#define ON_DESCRIPTOR(operation, descriptor, call)                                       \
    struct place place;                                                                  \
    if (!place_of_descriptor(descriptor, &place)) return (int)(call);                    \
    int fault = verdict(operation, &place) != NONE;                                      \
    int result = fault ? -1 : (int)(call);                                               \
    note(operation, &place, NULL, result, fault);                                        \
    return result;

int fsync(int descriptor) { ON_DESCRIPTOR("sync", descriptor, syscall(SYS_fsync, descriptor)) }
int fdatasync(int descriptor) { ON_DESCRIPTOR("sync", descriptor, syscall(SYS_fdatasync, descriptor)) }
int ftruncate64(int descriptor, off64_t size) { ON_DESCRIPTOR("truncate", descriptor, syscall(SYS_ftruncate, descriptor, size)) }
int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }

/* What an unlink or a rename takes away is kept in another directory, for whoever simulates a power cut. */
static void bury(const struct place *place) {
    char grave[PATH_MAX + 32];
    int kept = errno;
    if (!graves[0] || !place->inode) return;
    snprintf(grave, sizeof grave, "%s/%lu", graves, (unsigned long)place->inode);
    syscall(SYS_linkat, AT_FDCWD, place->path, AT_FDCWD, grave, 0);
    errno = kept;
}

/* Renames and links are matched by the name they make, and journalled with both. */
static int moved(const char *operation, int folder, const char *from, int to_folder, const char *to, long call, unsigned flags) {
    struct place source, place;
    int known = place_of_path(folder, from, &source);
    if (!place_of_path(to_folder, to, &place)) return (int)syscall(call, folder, from, to_folder, to, flags);
    int fault = verdict(operation, &place) != NONE;
    if (!fault) bury(&place);
    int result = fault ? -1 : (int)syscall(call, folder, from, to_folder, to, flags);
    if (!known) source = place;
    note(operation, &source, &place, result, fault);
    return result;
}

int renameat2(int folder, const char *from, int to_folder, const char *to, unsigned flags) {
    return moved("rename", folder, from, to_folder, to, SYS_renameat2, flags);
}
int renameat(int folder, const char *from, int to_folder, const char *to) { return renameat2(folder, from, to_folder, to, 0); }
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int folder, const char *from, int to_folder, const char *to, int flags) {
    return moved("link", folder, from, to_folder, to, SYS_linkat, (unsigned)flags);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char *path, int flags) {
    struct place doomed;
    if (graves[0] && !(flags & AT_REMOVEDIR) && place_of_path(folder, path, &doomed)) bury(&doomed);
    ON_PATH(flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder, path, syscall(SYS_unlinkat, folder, path, flags))
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdirat(int folder, const char *path, mode_t mode) {
    ON_PATH("mkdir", folder, path, syscall(SYS_mkdirat, folder, path, mode))
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

#if defined(__x86_64__)
static void caught(int signal, siginfo_t *info, void *context) {
    (void)signal;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (info->si_syscall != SYS_renameat) return;
    int kept = errno;
    int result = renameat2((int)registers[REG_RDI], (const char *)registers[REG_RSI], (int)registers[REG_RDX],
                           (const char *)registers[REG_R10], 0);
    registers[REG_RAX] = result < 0 ? -errno : result;
    errno = kept;
}

/* A child inherits the filter, so it needs the handler from its first moment on. */
__attribute__((constructor)) static void handle_caught(void) {
    struct sigaction handler = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSYS, &handler, NULL);
}

static void catch_renames(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
    renames_caught = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}
#else
static void catch_renames(void) {}
#endif

static void fresh_turn(void) { pthread_mutex_init(&turn, NULL); }

/* ---- what the process itself calls ---- */

/* Watch a directory, journal to a descriptor (or -1), and keep removed files in a directory (or ""). Returns whether
 * renames without libc are seen as well. */
int faults_watch(const char *directory, int descriptor, const char *keep) {
    static int prepared;
    if (!prepared) {
        prepared = 1;
        pthread_atfork(NULL, NULL, fresh_turn);
        catch_renames();
    }
    awake = 0;
    pthread_mutex_lock(&turn);
    snprintf(root, sizeof root, "%s", directory);
    root_length = strlen(root);
    snprintf(graves, sizeof graves, "%s", keep);
    journal = descriptor;
    rule_count = full_count = 0;
    pthread_mutex_unlock(&turn);
    awake = root_length > 0;
    return renames_caught;
}

/* Add a rule. Returns its number, or -1 if there are too many. */
int faults_arm(const char *operation, const char *glob, int occurrence, int action, double value, int sticky) {
    pthread_mutex_lock(&turn);
    int number = rule_count < RULES ? rule_count++ : -1;
    if (number >= 0) {
        struct rule *rule = &rules[number];
        memset(rule, 0, sizeof *rule);
        snprintf(rule->operation, sizeof rule->operation, "%s", operation);
        snprintf(rule->glob, sizeof rule->glob, "%s", glob);
        rule->occurrence = occurrence;
        rule->action = (enum action)action;
        rule->value = value;
        rule->sticky = sticky;
    }
    pthread_mutex_unlock(&turn);
    return number;
}

/* How often a rule has struck. */
int faults_fired(int number) { return number >= 0 && number < rule_count ? rules[number].fired : 0; }

/* Forget all rules, and let full files take bytes again. */
void faults_disarm(void) {
    pthread_mutex_lock(&turn);
    rule_count = full_count = 0;
    pthread_mutex_unlock(&turn);
}
