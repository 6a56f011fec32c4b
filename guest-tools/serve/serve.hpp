// SPDX-License-Identifier: Apache-2.0
// vf-guest serve: the host's end of the tests without a daemon, for another host's vfmgrd or
// vf-guest. Owns everything that it starts; one thread.
#pragma once

#include <functional>

#include "guest-tools/serve/credentials.hpp"
#include "guest-tools/serve/responder_server.hpp"

namespace vfmgr::serve {

struct ServeOptions {
    std::string address;  // the address under test, on a netdev of this machine
    std::string listen;   // for control; empty: `address`
    std::uint16_t port = responder_tls_port;
    std::string state_folder = "/var/lib/vf-guest";
    std::string token_file;  // empty: one in the state folder
    std::size_t sessions = 4;
    std::vector<std::string> rping_program;  // the command that runs interop::serve_rping()
};

struct ServeReady {
    ResponderInfo info;
    std::string ifname;
    HostPort listen;
    Credentials credentials;
};

// Serves until `stop` is readable. Calls `ready` once, when clients can connect.
[[nodiscard]] Result<void> serve(ServeOptions const& options, int stop,
                                 std::function<void(ServeReady const&)> const& ready);

// One line: address, netdev, port, fingerprint and the token's location.
[[nodiscard]] std::string ready_text(ServeReady const& ready);
[[nodiscard]] std::string ready_json(ServeReady const& ready);

}  // namespace vfmgr::serve
