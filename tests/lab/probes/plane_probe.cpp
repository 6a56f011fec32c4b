// SPDX-License-Identifier: Apache-2.0
// The guest plane and the responder without the daemon: one attachment, described by arguments, for
// whichever VM asks. In the emulated host, with leg, VF and VM set up by hand.
//   plane_probe NETDEV HOST_ADDRESS VF_ADDRESS VF_MAC MTU
// Lines on standard input: run, attach, detach, quit. Each verdict is one line of JSON.
#include <fmt/format.h>

#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "guest-tools/verify/random.hpp"
#include "service/guest/check_peer.hpp"
#include "service/guest/plane.hpp"

namespace {

using namespace vfmgr;

void say(std::string const& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

struct World {
    std::mutex mutex;
    GuestAttachment attachment;
    verify::SessionPermit permit;
    bool attached = true;

    GuestAccess access() {
        std::lock_guard const lock(mutex);
        if (!attached) return {};
        if (!attachment.run) return {{attachment}, {}};
        return {{attachment}, {permit}};
    }
    void want(std::string run, std::string nonce) {
        std::lock_guard const lock(mutex);
        permit.run = run;
        permit.nonce = nonce;
        attachment.run = std::move(run);
        attachment.nonce = std::move(nonce);
    }
    void verdict(Verification const& verification) {
        nlohmann::json out;
        to_json(out, verification);
        say("verdict " + to_json_text(out));
        std::lock_guard const lock(mutex);
        attachment.run.reset();
        attachment.nonce.clear();
    }
};

Result<void> describe(World& world, char** arguments, std::uint16_t echo_port) {
    auto& permit = world.permit;
    auto& attachment = world.attachment;
    permit.attachment = attachment.attachment = "probe01";
    permit.host_netdev = arguments[1];
    VFMGR_TRY(permit.host_address, IpAddress::parse(arguments[2]));
    VFMGR_TRY(permit.peer_address, IpAddress::parse(arguments[3]));
    VFMGR_TRY(permit.vf_mac, MacAddress::parse(arguments[4]));
    permit.mtu = static_cast<std::uint32_t>(std::stoul(arguments[5]));
    permit.rdma = RdmaMode::rxe;
    attachment.mac = permit.vf_mac;
    attachment.address = permit.peer_address;
    attachment.responder = permit.host_address;
    attachment.mtu = permit.mtu;
    attachment.rdma = RdmaMode::rxe;
    attachment.echo_port = echo_port;
    return {};
}

GuestPlaneHooks hooks_of(World& world) {
    GuestPlaneHooks hooks;
    hooks.identify = [](std::uint32_t cid) -> Result<VmIdentity> {
        return VmIdentity{fmt::format("cid-{}", cid), "vm", 1};
    };
    hooks.access = [&](VmIdentity const&) -> Result<GuestAccess> { return world.access(); };
    hooks.topology = [](VmIdentity const&) -> Result<HostTopology> { return HostTopology{}; };
    hooks.start_run = [&](VmIdentity const&, RunTicket const& ticket) -> Result<void> {
        world.want(ticket.run, ticket.nonce);
        return {};
    };
    hooks.on_verification = [&](Verification const& verification) { world.verdict(verification); };
    return hooks;
}

void obey(World& world, GuestPlane& plane) {
    for (std::string line; std::getline(std::cin, line) && line != "quit";) {
        if (line == "run") world.want(verify::random_hex(4), verify::random_hex(16));
        if (line == "attach" || line == "detach") {
            std::lock_guard const lock(world.mutex);
            world.attached = line == "attach";
        }
        plane.changed();
        say("did " + line);
    }
}

int told(Error const& error) {
    say(fmt::format("error {} [{}]", error.detail, error.remedy));
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 6) return told({Problem::invalid_request, "wrong number of arguments", ""});
    auto const responder = verify::Responder::start({}, check_peer);
    if (!responder) return told(responder.error());
    World world;
    if (auto const done = describe(world, arguments, (*responder)->echo_port()); !done)
        return told(done.error());
    GuestPlane plane(hooks_of(world), **responder, system_clock(), {});
    http::Server server{http::Limits{}};
    if (auto const done = server.listen(http::VsockListen{}, plane.handler()); !done)
        return told(done.error());
    server.start();
    say("ready");
    obey(world, plane);
    server.stop();
    return 0;
}
