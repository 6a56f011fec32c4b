// SPDX-License-Identifier: Apache-2.0
// vfmgrd-worker: a child process of vfmgrd, for one PF or the host's network. A separate, small
// program: a host has many of them, and a request waits while each one starts.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/kernel/worker.hpp"
#include "vfmgr/kernel/worker_process.hpp"

namespace {

int failed(std::string const& why) {
    fmt::print(stderr, "vfmgrd-worker: {}; usage: vfmgrd-worker PF|host (vfmgrd starts it)\n", why);
    return 2;
}

}  // namespace

// The worker ends when the daemon's socket closes, but finishes its step first: neither that nor
// the signals that stop the service may interrupt a step. A new daemon waits for it.
int main(int argc, char** argv) {
    using namespace vfmgr;
    if (argc != 2) return failed("it takes exactly one argument");
    auto const subject = worker_subject(argv[1]);
    if (!subject) return failed(subject.error().detail);
    // The program is started through its descriptor, whose number would become its name.
    ::prctl(PR_SET_NAME, worker_comm);
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    ::mallopt(M_ARENA_MAX, 1);  // each request has a thread, which would have its own arena
    LinuxKernel kernel{{}};
    WorkerService service(FileDescriptor(worker_socket_fd), kernel, *subject);
    service.run();
    service.finish_steps();
    ::_exit(0);  // anything that still hangs ends with the process, when the kernel releases it
}
