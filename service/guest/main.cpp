// SPDX-License-Identifier: Apache-2.0
// vfmgr-guestd: what VMs reach on the host. systemd starts it when vfmgrd or a VM connects; it ends
// on SIGTERM.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "service/guest/check_peer.hpp"
#include "service/guest/serve.hpp"
#include "service/socket_program.hpp"
#include "vfmgr/proof/interop/rping.hpp"

namespace vfmgr::guestd {
namespace {

constexpr int arenas = 2;
// main() runs interop::serve_rping() on the arguments that follow.
std::vector<std::string> const rping_program{"/proc/self/exe", "--rping"};

// systemd makes it (StateDirectory=), and says where.
std::string state_folder() {
    auto const* const named = std::getenv("STATE_DIRECTORY");
    return named ? named : "";
}

// systemd's sockets of vfmgr-guestd.socket.
struct Sockets {
    int front = -1;   // vfmgrd connects
    int guests = -1;  // VMs connect
};

Result<Sockets> inherited_sockets() {
    Sockets sockets;
    for (int fd = SD_LISTEN_FDS_START, end = fd + ::sd_listen_fds(1); fd < end; ++fd)
        (::sd_is_socket(fd, AF_VSOCK, SOCK_STREAM, 1) > 0 ? sockets.guests : sockets.front) = fd;
    if (sockets.front >= 0 && sockets.guests >= 0) return sockets;
    return fail(Problem::unavailable, "vfmgr-guestd got no sockets",
                "systemd starts it: systemctl start vfmgr-guestd.socket");
}

Result<void> run() {
    VFMGR_TRY(auto const sockets, inherited_sockets());
    VFMGR_TRY(auto const service,
              Service::start(
                  {check_peer,
                   rping_program,
                   system_clock(),
                   [](std::string const& what) {
                       fmt::print(stderr, SD_ERR "an exception ended a connection: {}\n", what);
                   },
                   {},
                   state_folder(),
                   [](std::string const& what) { fmt::print(stderr, SD_WARNING "{}\n", what); }}));
    VFMGR_CHECK(
        service->listen(http::InheritedListen{sockets.guests, http::SourcePort::privileged}));
    accept_until_signal(sockets.front, [&service = *service](FileDescriptor socket) {
        service.serve(std::move(socket));
    });
    // Nothing is waited for: vfmgrd has its guests run again what was cut short.
    ::_exit(0);
}

}  // namespace
}  // namespace vfmgr::guestd

int main(int argc, char** argv) {
    using namespace vfmgr;
    CLI::App app{"Serves the virtual machines of this host: their configuration and RDMA tests."};
    std::vector<std::string> rping;
    app.add_option("--rping", rping, "serve rping of one guest for vfmgr-guestd")->group("");
    app.set_version_flag("--version", VFMGR_VERSION);
    CLI11_PARSE(app, argc, argv);
    if (!rping.empty()) return interop::serve_rping(rping);
    // Threads come and go with sessions; each would leave memory behind in its own arena.
    ::mallopt(M_ARENA_MAX, guestd::arenas);
    block_ending_signals();
    auto const served = guestd::run();
    return served ? 0 : failed_to_start(served.error());
}
