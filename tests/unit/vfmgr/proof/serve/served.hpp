// SPDX-License-Identifier: Apache-2.0
// A responder served over TLS on loopback, without RDMA. Owned by its test.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/unit/free_port.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/proof/serve/credentials.hpp"
#include "vfmgr/proof/serve/remote_responder.hpp"
#include "vfmgr/proof/serve/responder_server.hpp"

namespace vfmgr::test {

struct ServedResponder {
    using CheckPeer = verify::Responder::CheckPeer;
    explicit ServedResponder(CheckPeer check_peer = [](auto const&) { return Result<void>(); }) {
        verify::ResponderLimits limits;
        // Tests run side by side, each in its process; the plane's own tests have the port before.
        limits.echo_port = static_cast<std::uint16_t>(28000 + ::getpid() % 4000);
        responder = verify::Responder::start(limits, std::move(check_peer)).value();
        credentials = serve::credentials_in(folder.file("state"), {}, "127.0.0.1").value();
        info = {"0.2.0",
                *IpAddress::parse("127.0.0.1"),
                limits.echo_port,
                MacAddress{{2, 0, 0, 1}},
                1500,
                "rxe0"};
        answering = std::make_unique<serve::ResponderServer>(
            serve::Served{info, "", {}, credentials}, *responder);
        http::TlsListen const where{"127.0.0.1", port, credentials.certificate_file,
                                    credentials.key_file};
        auto const listening = server.listen(where, answering->handler());
        EXPECT_TRUE(listening) << listening.error().detail;
        server.start();
    }
    ~ServedResponder() { server.stop(); }
    ServedResponder(ServedResponder const&) = delete;
    ServedResponder& operator=(ServedResponder const&) = delete;

    [[nodiscard]] ResponderTarget target() const {
        return {{"127.0.0.1", port}, credentials.fingerprint, credentials.token};
    }

    TemporaryFolder folder;
    std::uint16_t port = free_port();
    std::unique_ptr<verify::Responder> responder;
    serve::Credentials credentials;
    ResponderInfo info;
    std::unique_ptr<serve::ResponderServer> answering;
    http::Server server{http::Limits{}};
};

// The permit of a guest on loopback that only tests IP.
inline verify::SessionPermit loopback_permit(std::string run = "r1") {
    verify::SessionPermit permit;
    permit.attachment = "a1";
    permit.run = std::move(run);
    permit.nonce = "n1";
    permit.vf_mac = *MacAddress::parse("52:54:00:11:22:33");
    permit.peer_address = *IpAddress::parse("127.0.0.1");
    permit.rdma = RdmaMode::none;
    permit.path = TestPath::wire;
    return permit;
}

}  // namespace vfmgr::test
