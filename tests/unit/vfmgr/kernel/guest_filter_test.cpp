// SPDX-License-Identifier: Apache-2.0
// What the filter opens to a guest on TCP, at work on the host's interfaces.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include "knocking.hpp"

namespace vfmgr {
namespace {

using test::enter;
using test::ip;
using test::roce;
using testing::ElementsAre;

using GuestFilter = test::Knocking;

// The port of a VM without a vsock device: open to it, as long as it is attached, and to nobody
// else.
TEST_F(GuestFilter, TheGuestPlaneIsOpenToItsGuestAlone) {
    perform(AddAddress{untagged, ip("192.168.77.1")});
    auto const guest_plane = [&](std::string const& from) {
        enter(host);
        FileDescriptor const service(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0));
        int const one = 1;
        ::setsockopt(service.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        auto const here = test::at(ip("192.168.77.1"), guest_plane_port);
        EXPECT_EQ(::bind(service.get(), reinterpret_cast<sockaddr const*>(&here), sizeof here), 0);
        EXPECT_EQ(::listen(service.get(), 1), 0);
        enter(tenant);
        FileDescriptor const guest(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0));
        auto const source = test::at(ip(from), 0);
        EXPECT_EQ(::bind(guest.get(), reinterpret_cast<sockaddr const*>(&source), sizeof source),
                  0);
        static_cast<void>(
            ::connect(guest.get(), reinterpret_cast<sockaddr const*>(&here), sizeof here));
        enter(host);
        pollfd waiting{.fd = service.get(), .events = POLLIN, .revents = 0};
        return ::poll(&waiting, 1, 300) == 1;
    };
    AddPeer peer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")};
    perform(peer);
    EXPECT_FALSE(guest_plane("192.168.77.9")) << "it has a vsock device";
    peer.guest_plane = true;
    perform(peer);
    EXPECT_TRUE(guest_plane("192.168.77.9"));
    EXPECT_FALSE(guest_plane("10.1.2.9")) << "from another address";
    EXPECT_TRUE(interfaces().at(0).closed.at(0).guest_plane);
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), ElementsAre(roce, responder_echo_port));
    peer.mac = MacAddress{{0x02, 0, 0, 0, 0, 0x77}};
    perform(peer);
    EXPECT_FALSE(guest_plane("192.168.77.9")) << "from another MAC";
    perform(RemovePeer{untagged, ip("192.168.77.9")});
    EXPECT_FALSE(guest_plane("192.168.77.9")) << "after the attachment";
}

}  // namespace
}  // namespace vfmgr
