// SPDX-License-Identifier: Apache-2.0
// A dishonest or broken vf-guest, run in a VM by the scenarios hostile-guest and faults. The last
// line is the verdict that the host gave, or how it refused; exit 0 when there was one.
//   hostile_guest claim ATTACHMENT                     reports a pass, sends nothing
//   hostile_guest other-nic ATTACHMENT IFNAME ADDRESS  tests over the RDMA device of that address,
//                                                      and says so
//   hostile_guest masked-nic …                         the same, but claims the VF's GID
//   hostile_guest flip|swap|short|gid ATTACHMENT IFNAME  writes with a bit flipped, two chunks
//                                                      exchanged, the end left out; or names
//                                                      another GID
//   hostile_guest hoard ATTACHMENT IFNAME              two streams of one session at once
//   hostile_guest poor PROGRAM WORD…                   runs it with 64 KiB of locked memory
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "guest-tools/net/host_client.hpp"
#include "vfmgr/proof/random_payload.hpp"
#include "vfmgr/proof/session.hpp"
#include "vfmgr/proof/turns.hpp"

namespace {

using namespace vfmgr;

void show(Result<Verification> const& verification) {
    nlohmann::json out;
    if (verification)
        out = *verification;
    else
        out = {{"refused", verification.error().detail}};
    fmt::print("{}\n", to_json_text(out));
}

Result<SessionOffer> open(guest::HostClient& host, SessionRequest const& request) {
    auto const until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    return verify::await_turn<SessionOffer>([&] { return host.open_session(request); },
                                            verify::wait_until(until));
}

Result<Verification> claim(guest::HostClient& host, GuestAttachment const& expected) {
    QueuePairEnd const made_up{verify::gid_hex(expected.address.gid()), 0x123456, 0x654321, 1024,
                               1};
    VFMGR_TRY(auto const offer, open(host, {expected.attachment, expected.run.value_or(""),
                                            expected.nonce, made_up}));
    GuestReport report;
    report.nonce = expected.nonce;
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

Result<Verification> other_nic(guest::HostClient& host, GuestAttachment const& expected, Gid shown,
                               char** where) {
    auto subject = expected;
    VFMGR_TRY(subject.address, IpAddress::parse(where[1]));
    VFMGR_TRY(auto const session, verify::GuestSession::prepare({subject, where[0]}));
    auto request = session->request();
    if (shown == Gid::of_the_vf) request.guest.gid = verify::gid_hex(expected.address.gid());
    VFMGR_TRY(auto const offer, open(host, request));
    return host.report(offer.session, session->run(offer));
}

// The region's bytes with the damage, and the number of bytes to write.
std::size_t damage(std::string_view how, std::span<std::byte> bytes) {
    constexpr auto chunk = verify::payload_chunk_bytes;
    if (how == "flip") bytes[100'000] ^= std::byte{1};
    if (how == "swap")
        std::swap_ranges(bytes.begin() + 17 * chunk, bytes.begin() + 18 * chunk,
                         bytes.begin() + 18 * chunk);
    return how == "short" ? bytes.size() - 4096 : bytes.size();
}

// Opens more of the host's streams than one session needs.
Result<Verification> hoard(guest::HostClient& host, std::string const& session,
                           QueuePairEnd const& end) {
    StreamRequest const request{StreamKind::one_sided, 64, 1, {end}, std::nullopt};
    VFMGR_CHECK(host.open_stream(session, request));
    VFMGR_CHECK(host.open_stream(session, request));
    return fail(Problem::internal, "the host gave a second stream");
}

// Writes the whole region by RDMA once, and claims that all went well.
Result<Verification> damaged(guest::HostClient& host, GuestAttachment const& expected,
                             std::string_view how, std::string const& ifname) {
    using namespace verify;
    VFMGR_TRY(auto endpoint, open_endpoint({expected.address, ifname}, endpoint_wait));
    VFMGR_TRY(auto pair, QueuePair::make(endpoint, {.sends = 1, .receives = 1}, 0));
    SessionRequest request{expected.attachment, expected.run.value_or(""), expected.nonce,
                           pair.end()};
    if (how == "gid") request.guest.gid = gid_hex(expected.responder.gid());
    VFMGR_TRY(auto const offer, open(host, request));
    if (how == "hoard") return hoard(host, offer.session, pair.end());
    VFMGR_TRY(auto const memory, RegisteredMemory::make(endpoint.pd.get(), offer.write.length,
                                                        IBV_ACCESS_LOCAL_WRITE, "region"));
    fill(Payload::from_seed(offer.write_seed, epoch_write), 0, memory.bytes());
    auto const written = memory.bytes().first(damage(how, memory.bytes()));
    VFMGR_CHECK(pair.connect(endpoint, offer.host));
    VFMGR_CHECK(pair.transfer(
        0, TransferDirection::write,
        {{written, memory.local_key()}, offer.write.address, offer.write.rkey, notify_write_mr}));
    std::array<ibv_wc, 1> room{};
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    VFMGR_CHECK(await(pair.completions(), room, deadline, "the region's write"));
    pair.shut(deadline);
    GuestReport report;
    report.nonce = expected.nonce;
    report.tests.push_back(measured("rdma_write").result);
    return host.report(offer.session, report);
}

// Returns only when it fails.
int run_poor(char** program) {
    constexpr rlimit little{64 << 10, 64 << 10};
    ::setrlimit(RLIMIT_MEMLOCK, &little);
    ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK);
    ::execvp(program[0], program);
    std::perror("hostile_guest: exec");
    return 2;
}

Result<Verification> run(int count, char** arguments) {
    std::string_view const mode = count > 2 ? arguments[1] : "";
    bool const damages =
        (mode == "flip" || mode == "swap" || mode == "short" || mode == "gid" || mode == "hoard") &&
        count == 4;
    bool const claims = mode == "claim" && count == 3;
    bool const tests = (mode == "other-nic" || mode == "masked-nic") && count == 5;
    if (!claims && !tests && !damages)
        return fail(Problem::invalid_request, "see the comment in hostile_guest.cpp");
    guest::HostClient host(
        http::VsockTarget{.cid = 2, .port = 8471, .source = http::SourcePort::privileged});
    VFMGR_TRY(auto const expected, host.start_run(arguments[2], {Profile::quick}));
    if (damages) return damaged(host, expected, mode, arguments[3]);
    if (claims) return claim(host, expected);
    return other_nic(host, expected, mode == "other-nic" ? Gid::own : Gid::of_the_vf,
                     arguments + 3);
}

}  // namespace

int main(int count, char** arguments) {
    if (count > 2 && std::string_view(arguments[1]) == "poor") return run_poor(arguments + 2);
    auto const verification = run(count, arguments);
    show(verification);
    return verification ? 0 : 1;
}
