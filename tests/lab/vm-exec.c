// SPDX-License-Identifier: Apache-2.0
// Runs commands inside a VM on request over vsock: the lab's own access to the VM, independent of
// vfmgr, of the VM's network and of its image.
//
//   vm-exec --serve                       in the VM: serves only the host (CID 2)
//   vm-exec [--wait SECONDS] CID COMMAND  on the host: like ssh, output and exit status included
//
// The request is a length and that many bytes for `sh -c`. The answer is a row of frames, each a
// type ('o' stdout, 'e' stderr, 'x' exit status), a length and that many bytes. A client that goes
// away takes its command with it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { port = 9999, command_bytes_max = 1 << 20, no_answer = 255, cut_off = 254 };

struct header {
    char type;
    uint32_t length;
} __attribute__((packed));

static int write_all(int fd, void const* data, size_t size) {
    for (char const* p = data; size > 0;) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

static int read_all(int fd, void* data, size_t size) {
    for (char* p = data; size > 0;) {
        ssize_t n = read(fd, p, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

static int send_frame(int fd, char type, void const* data, uint32_t size) {
    struct header header = {type, size};
    return write_all(fd, &header, sizeof header) || write_all(fd, data, size) ? -1 : 0;
}

// Forwards what the pipe holds; 0 when the pipe is at its end or the client is gone.
static int forward(int from, int to, char type) {
    char buffer[16384];
    ssize_t n = read(from, buffer, sizeof buffer);
    if (n < 0) return errno == EINTR || errno == EAGAIN;
    return n > 0 && send_frame(to, type, buffer, (uint32_t)n) == 0;
}

static pid_t start_shell(char const* command, int out, int err) {
    pid_t child = fork();
    if (child != 0) return child;
    setsid();
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    execl("/bin/sh", "sh", "-c", command, (char*)NULL);
    _exit(127);
}

static void serve_one(int client) {
    uint32_t length = 0;
    if (read_all(client, &length, sizeof length) || length > command_bytes_max) return;
    char* command = calloc(length + 1, 1);
    if (!command || read_all(client, command, length)) return;

    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) return;
    pid_t child = start_shell(command, out[1], err[1]);
    if (child < 0) return;
    close(out[1]);
    close(err[1]);
    int exited = (int)syscall(SYS_pidfd_open, child, 0);

    struct pollfd watch[4] = {
        {out[0], POLLIN, 0}, {err[0], POLLIN, 0}, {exited, POLLIN, 0}, {client, POLLIN, 0}};
    while (poll(watch, 4, -1) >= 0 || errno == EINTR) {
        if (watch[0].revents && !forward(out[0], client, 'o')) watch[0].fd = -1;
        if (watch[1].revents && !forward(err[0], client, 'e')) watch[1].fd = -1;
        if (watch[3].revents) {  // the client sends nothing more: this is its end
            kill(-child, SIGKILL);
            return;
        }
        if (watch[2].revents) break;
    }
    // What the shell left in the background may hold the pipes for ever: take what is there now.
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    for (struct pollfd last = {out[0], POLLIN, 0}; poll(&last, 1, 0) == 1 && last.revents & POLLIN;)
        if (!forward(out[0], client, 'o')) break;
    for (struct pollfd last = {err[0], POLLIN, 0}; poll(&last, 1, 0) == 1 && last.revents & POLLIN;)
        if (!forward(err[0], client, 'e')) break;
    int status = 0;
    waitpid(child, &status, 0);
    uint32_t code = (uint32_t)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    send_frame(client, 'x', &code, sizeof code);
}

static int serve(void) {
    int listener = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_vm here = {.svm_family = AF_VSOCK, .svm_port = port, .svm_cid = VMADDR_CID_ANY};
    if (listener < 0 || bind(listener, (struct sockaddr*)&here, sizeof here) ||
        listen(listener, 32)) {
        perror("vm-exec: vsock");
        return 1;
    }
    signal(SIGCHLD, SIG_IGN);
    fprintf(stderr, "vm-exec: ready\n");
    for (;;) {
        struct sockaddr_vm peer = {0};
        socklen_t size = sizeof peer;
        int client = accept4(listener, (struct sockaddr*)&peer, &size, SOCK_CLOEXEC);
        if (client < 0) continue;
        if (peer.svm_cid == VMADDR_CID_HOST && fork() == 0) {
            signal(SIGCHLD, SIG_DFL);
            close(listener);
            serve_one(client);
            _exit(0);
        }
        close(client);
    }
}

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// A VM that is still booting refuses, resets or does not answer; no event tells when it will.
static int connect_until(uint32_t cid, double deadline) {
    for (;;) {
        int server = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_vm there = {.svm_family = AF_VSOCK, .svm_port = port, .svm_cid = cid};
        if (server >= 0 && connect(server, (struct sockaddr*)&there, sizeof there) == 0)
            return server;
        int reason = errno;
        if (server >= 0) close(server);
        if (now_seconds() >= deadline) {
            errno = reason;
            return -1;
        }
        nanosleep(&(struct timespec){0, 100 * 1000 * 1000}, NULL);
    }
}

static int ask(uint32_t cid, char const* command, double wait_seconds) {
    int server = connect_until(cid, now_seconds() + wait_seconds);
    if (server < 0) {
        fprintf(stderr, "vm-exec: no agent at CID %u: %s\n", cid, strerror(errno));
        return no_answer;
    }
    uint32_t length = (uint32_t)strlen(command);
    if (write_all(server, &length, sizeof length) || write_all(server, command, length))
        return cut_off;
    struct header header;
    while (read_all(server, &header, sizeof header) == 0) {
        char buffer[16384];
        if (header.length > sizeof buffer || read_all(server, buffer, header.length)) break;
        if (header.type == 'x') {
            uint32_t code = cut_off;
            memcpy(&code, buffer, sizeof code);
            return (int)code;
        }
        write_all(header.type == 'e' ? 2 : 1, buffer, header.length);
    }
    fprintf(stderr, "vm-exec: the VM at CID %u went away\n", cid);
    return cut_off;
}

int main(int argc, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "--serve") == 0) return serve();
    double wait_seconds = 0;
    if (argc == 5 && strcmp(argv[1], "--wait") == 0) {
        wait_seconds = atof(argv[2]);
        argv += 2;
        argc -= 2;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: vm-exec --serve | vm-exec [--wait SECONDS] CID COMMAND\n");
        return 2;
    }
    return ask((uint32_t)strtoul(argv[1], NULL, 10), argv[2], wait_seconds);
}
