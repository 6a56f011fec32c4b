// SPDX-License-Identifier: Apache-2.0
// Any bytes as a guest's message: no crash, nothing beyond the limits, and no report, whatever it
// claims, passes when the host observed no traffic.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "api/types/enrolment.hpp"
#include "api/types/json.hpp"
#include "tests/fuzz/require.hpp"
#include "vfmgr/proof/host/judge.hpp"
#include "vfmgr/rdma/device.hpp"

namespace {

using namespace vfmgr;

verify::SessionFacts nothing_seen() {
    verify::SessionFacts facts;
    facts.reachability.answer_digest = std::string(64, 'a');
    facts.path_mtu.answer_digest = std::string(64, 'b');
    facts.pings_expected = 16;
    facts.answer_digest = std::string(64, 'c');
    facts.read_digest = std::string(64, 'd');
    facts.write_check.bytes_checked = facts.write_check.mismatches = 4 << 20;
    facts.write_check.untouched = true;
    return facts;
}

void as_request(std::string_view text) {
    auto const request = from_json_text<SessionRequest>(text);
    if (!request) return require(!request.error().detail.empty());
    require(request->nonce.size() <= 64 && request->run.size() <= 64);
    require(request->guest.qp_num < (1U << 24) && request->guest.psn < (1U << 24));
    require(verify::parse_gid(request->guest.gid).has_value());
    require(verify::mtu_of_bytes(request->guest.path_mtu).has_value());
}

void as_stream(std::string_view text) {
    auto const request = from_json_text<StreamRequest>(text);
    if (!request) return require(!request.error().detail.empty());
    require(request->message_bytes >= 1 && request->message_bytes <= 8U << 20);
    require(request->depth >= 1 && request->depth <= 1024);
    bool const by_cm = request->kind == StreamKind::cm_ping;
    require(request->pairs.size() <= 16 && request->pairs.empty() == by_cm);
    require(!by_cm || request->message_bytes <= cm_bytes_max);
    bool const datagrams = request->kind == StreamKind::ud_echo;
    require(!datagrams || (request->pairs.size() == 1 && request->message_bytes >= ud_bytes_min &&
                           request->message_bytes <= ud_bytes_max));
    bool const transfers = is_transfer(request->kind);
    require(request->back.has_value() == (transfers || request->kind == StreamKind::write_echo));
    require(!request->dct || (transfers && request->dct->qp_num < (1U << 24)));
    require(from_json_text<StreamRequest>(to_json_text(*request)) == *request);
}

void as_report(std::string_view text) {
    auto const report = from_json_text<GuestReport>(text);
    if (!report) return;
    verify::SessionPermit permit;
    permit.nonce = report->nonce;  // the worst case
    permit.mtu = 9000;
    for (auto const rdma : {RdmaMode::auto_, RdmaMode::none}) {
        permit.rdma = rdma;
        auto const verification = verify::judge(permit, nothing_seen(), *report);
        require(verification.verdict == Verdict::fail && !verification.detail.empty());
        for (auto const& test : verification.tests)
            for (auto const& [name, value] : test.figures)
                require(name.size() <= 40 && std::isfinite(value) && value >= 0);
        require(from_json_text<Verification>(to_json_text(verification)) == verification);
    }
    require(verify::judge_error(permit, *report).verdict == Verdict::fail);
}

// vf-guest reads it as root, from a file that the host's admin delivers.
void as_enrolment(std::string_view text) {
    if (auto const request = from_json_text<KeyRequest>(text))
        require(request->secret.size() <= 128);
    auto const enrolment = from_json_text<Enrolment>(text);
    if (!enrolment) return require(!enrolment.error().detail.empty());
    require(enrolment->port != 0 && enrolment->fingerprint.size() == 64);
    require(enrolment->attachment.mac.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    as_request(text);
    as_stream(text);
    as_report(text);
    as_enrolment(text);
    return 0;
}
