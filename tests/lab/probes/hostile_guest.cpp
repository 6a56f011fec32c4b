// SPDX-License-Identifier: Apache-2.0
// A dishonest vf-guest, run in a VM by the scenario hostile-guest. The last line is the verdict
// that the host gave, or how it refused; exit 0 when there was one.
//   hostile_guest claim ATTACHMENT                     reports a pass, sends nothing
//   hostile_guest other-nic ATTACHMENT IFNAME ADDRESS  tests over the RDMA device of that address,
//                                                      and says so
//   hostile_guest masked-nic …                         the same, but claims the VF's GID
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "guest-tools/net/host_client.hpp"
#include "guest-tools/verify/session.hpp"

namespace {

using namespace vfmgr;

void show(Result<Verification> const& verification) {
    nlohmann::json out;
    if (verification)
        to_json(out, *verification);
    else
        out = {{"refused", verification.error().detail}};
    fmt::print("{}\n", to_json_text(out));
}

Result<Verification> claim(guest::HostClient& host, GuestAttachment const& wanted) {
    QueuePairEnd const made_up{verify::gid_hex(wanted.address.gid()), 0x123456, 0x654321, 1024, 1};
    VFMGR_TRY(auto const offer, host.open_session({wanted.attachment, wanted.run.value_or(""),
                                                   wanted.nonce, made_up}));
    GuestReport report;
    report.nonce = wanted.nonce;
    for (auto const* name :
         {"reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read", "write_latency"}) {
        TestResult test;
        test.name = name;
        test.verdict = Verdict::pass;
        test.by = Judge::host;
        test.bytes_checked = 4 << 20;
        test.figures = {{"bandwidth_mbps", 100000}, {"samples", 2000}};
        report.tests.push_back(test);
        report.digests[name] = std::string(64, '0');
    }
    return host.report(offer.session, report);
}

enum class Gid { own, of_the_vf };

Result<Verification> other_nic(guest::HostClient& host, GuestAttachment const& wanted, Gid shown,
                               char** where) {
    auto subject = wanted;
    VFMGR_TRY(subject.address, IpAddress::parse(where[1]));
    VFMGR_TRY(auto const session, verify::GuestSession::prepare({subject, where[0]}));
    auto request = session->request();
    if (shown == Gid::of_the_vf) request.guest.gid = verify::gid_hex(wanted.address.gid());
    VFMGR_TRY(auto const offer, host.open_session(request));
    return host.report(offer.session, session->run(offer));
}

Result<Verification> run(int count, char** arguments) {
    std::string_view const mode = count > 2 ? arguments[1] : "";
    bool const claims = mode == "claim" && count == 3;
    bool const tests = (mode == "other-nic" || mode == "masked-nic") && count == 5;
    if (!claims && !tests)
        return fail(Problem::invalid_request, "see the comment in hostile_guest.cpp");
    guest::HostClient host(
        http::VsockTarget{.cid = 2, .port = 8471, .source = http::SourcePort::privileged});
    VFMGR_TRY(auto const wanted, host.start_run(arguments[2]));
    if (claims) return claim(host, wanted);
    return other_nic(host, wanted, mode == "other-nic" ? Gid::own : Gid::of_the_vf, arguments + 3);
}

}  // namespace

int main(int count, char** arguments) {
    auto const verification = run(count, arguments);
    show(verification);
    return verification ? 0 : 1;
}
