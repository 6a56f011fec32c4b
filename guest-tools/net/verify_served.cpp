// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/verify_served.hpp"

#include "api/os/random.hpp"
#include "guest-tools/serve/local_end.hpp"
#include "guest-tools/serve/remote_responder.hpp"
#include "guest-tools/verify/await_turn.hpp"

namespace vfmgr::guest {
namespace {

Result<serve::LocalEnd> own_end(ServedTest const& test, ResponderInfo const& info) {
    if (test.address) return serve::find_local_end(*test.address);
    VFMGR_TRY(auto const address, serve::address_towards(info.address));
    return serve::find_local_end(address);
}

verify::Subject subject_of(serve::LocalEnd const& end, ServedTest const& test,
                           ResponderInfo const& info) {
    verify::Subject subject;
    subject.ifname = end.netdev.name;
    auto& attachment = subject.attachment;
    // One address has one session: the next test replaces one that was cut short.
    attachment.attachment = to_string(end.address.address);
    attachment.mac = end.netdev.mac.value_or(MacAddress{});
    attachment.address = end.address.address;
    attachment.prefix_length = end.address.prefix_length;
    attachment.mtu = end.netdev.mtu;
    attachment.responder = info.address;
    attachment.echo_port = info.echo_port;
    attachment.run = random_hex(8);
    attachment.nonce = random_hex(16);
    attachment.profile = test.profile;
    return subject;
}

verify::SessionPermit permit_of(GuestAttachment const& attachment) {
    verify::SessionPermit permit;
    permit.attachment = attachment.attachment;
    permit.run = *attachment.run;
    permit.nonce = attachment.nonce;
    permit.vf_mac = attachment.mac;
    permit.peer_address = attachment.address;
    permit.mtu = attachment.mtu;
    permit.rdma = attachment.rdma;
    permit.dscp = attachment.dscp;
    permit.path.reset();
    permit.profile = attachment.profile;
    return permit;
}

verify::StreamHost streams_of(serve::RemoteResponder const& remote, std::string const& session) {
    return {
        [&remote, session](StreamRequest const& request) {
            return verify::await_turn<StreamOffer>(
                [&] { return remote.open_stream(session, request); },
                verify::wait_until(std::chrono::steady_clock::now() + verify::stream_patience));
        },
        [&remote, session](std::string const& stream) { remote.close_stream(session, stream); }};
}

}  // namespace

Result<VfReport> verify_served(ServedTest const& test, std::vector<verify::Measurement> measured,
                               verify::GuestSession::OnTest on_test) {
    auto const started_at = system_clock().now();
    serve::RemoteResponder const remote(test.responder);
    VFMGR_TRY(auto const info, remote.info());
    VFMGR_TRY(auto const end, own_end(test, info));
    auto const subject = subject_of(end, test, info);
    auto const permit = permit_of(subject.attachment);
    TestHost const host{
        .open = [&](SessionRequest const& request) { return remote.open(permit, request); },
        .streams = [&](std::string const& session) { return streams_of(remote, session); },
        .report = [&](std::string const& session,
                      GuestReport const& report) { return remote.close(session, permit, report); },
        .cannot = [](Error const& error) -> Result<Verification> { return fail(error); }};
    VFMGR_TRY(auto done, run_tests(host, subject, std::move(measured), std::move(on_test)));
    done.verification.started_at = started_at;
    done.verification.finished_at = system_clock().now();
    return done;
}

}  // namespace vfmgr::guest
