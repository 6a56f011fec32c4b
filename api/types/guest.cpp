// SPDX-License-Identifier: Apache-2.0
#include "api/types/guest.hpp"

#include <bit>

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

// Limits on what a guest may send: guests are hostile.
constexpr std::size_t id_characters_max = 64;
constexpr std::size_t sentence_characters_max = 1024;
constexpr std::size_t fact_characters_max = 256;
constexpr std::size_t tests_max = 32;
constexpr std::size_t figures_max = 32;
constexpr std::size_t digests_max = 8;
constexpr std::size_t facts_max = 16;
constexpr std::size_t counters_max = 64;

bool check_count(JsonReader& reader, std::string const& pointer, std::size_t count,
                 std::size_t count_max) {
    if (count > count_max) reader.complain(pointer, fmt::format("must be at most {}", count_max));
    return count <= count_max;
}

bool is_hex(std::string_view text, std::size_t digits) {
    return text.size() == digits &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void check_test(JsonReader& reader, std::string const& pointer, TestResult const& test) {
    check_text(reader, pointer + "/name", test.name, id_characters_max);
    check_text(reader, pointer + "/detail", test.detail, sentence_characters_max);
    check_text(reader, pointer + "/remedy", test.remedy, sentence_characters_max);
    if (check_count(reader, pointer + "/figures", test.figures.size(), figures_max))
        for (auto const& [name, unused] : test.figures)
            check_text(reader, pointer + "/figures/" + pointer_token(name), name,
                       id_characters_max);
}

void check_map(JsonReader& reader, std::string const& pointer,
               std::map<std::string, std::string> const& texts, std::size_t count_max) {
    if (!check_count(reader, pointer, texts.size(), count_max)) return;
    for (auto const& [name, text] : texts) {
        check_text(reader, pointer + "/" + pointer_token(name), name, id_characters_max);
        check_text(reader, pointer + "/" + pointer_token(name), text, fact_characters_max);
    }
}

}  // namespace

template <class F, Of<GuestAttachment> V>
void fields(F& f, V& attachment) {
    f.value("attachment", attachment.attachment);
    f.value("mac", attachment.mac);
    f.value("address", attachment.address);
    f.value("prefix_length", attachment.prefix_length);
    f.value("mtu", attachment.mtu);
    f.value("rdma", attachment.rdma);
    f.maybe("dscp", attachment.dscp);
    f.value("responder", attachment.responder);
    f.value("echo_port", attachment.echo_port);
    f.nullable("run", attachment.run);
    f.defaulted("nonce", attachment.nonce);
    f.defaulted("profile", attachment.profile);
}

template <class F, Of<GuestConfig> V>
void fields(F& f, V& config) {
    f.value("revision", config.revision);
    f.value("attachments", config.attachments);
}

template <class F, Of<RunRequest> V>
void fields(F& f, V& request) {
    f.defaulted("profile", request.profile);
}

template <class F, Of<QueuePairEnd> V>
void fields(F& f, V& end) {
    f.value("gid", end.gid);
    f.value("qp_num", end.qp_num);
    f.value("psn", end.psn);
    f.value("path_mtu", end.path_mtu);
    f.defaulted("reads_max", end.reads_max);
}

template <class F, Of<SessionRequest> V>
void fields(F& f, V& request) {
    f.value("attachment", request.attachment);
    f.value("run", request.run);
    f.value("nonce", request.nonce);
    f.value("guest", request.guest);
}

template <class F, Of<MemoryRegion> V>
void fields(F& f, V& mr) {
    f.value("address", mr.address);
    f.value("rkey", mr.rkey);
    f.value("length", mr.length);
}

template <class F, Of<SessionOffer> V>
void fields(F& f, V& offer) {
    f.value("session", offer.session);
    f.value("host", offer.host);
    f.value("write", offer.write);
    f.value("write_seed", offer.write_seed);
    f.value("read", offer.read);
    f.value("ping_count", offer.ping_count);
    f.value("ping_size", offer.ping_size);
    f.value("ping_seed", offer.ping_seed);
    f.value("deadline_seconds", offer.deadline_seconds);
}

template <class F, Of<GuestReport> V>
void fields(F& f, V& report) {
    f.value("nonce", report.nonce);
    f.value("tests", report.tests);
    f.defaulted("digests", report.digests);
    f.defaulted("counters", report.counters);
    f.defaulted("facts", report.facts);
    f.defaulted("error", report.error);
}

void check(JsonReader& reader, QueuePairEnd const& end) {
    constexpr std::uint32_t bits24 = 0xffffff;
    if (!reader.clean()) return;
    if (!is_hex(end.gid, 32)) reader.complain("gid", "must be 32 lower-case hexadecimal digits");
    if (end.qp_num > bits24) reader.complain("qp_num", "must fit into 24 bits");
    if (end.psn > bits24) reader.complain("psn", "must fit into 24 bits");
    if (end.path_mtu < 256 || end.path_mtu > 4096 || !std::has_single_bit(end.path_mtu))
        reader.complain("path_mtu", "must be one of 256, 512, 1024, 2048, 4096");
}

void check(JsonReader& reader, SessionRequest const& request) {
    check_text(reader, "attachment", request.attachment, id_characters_max);
    check_text(reader, "run", request.run, id_characters_max);
    check_text(reader, "nonce", request.nonce, id_characters_max);
}

void check(JsonReader& reader, GuestReport const& report) {
    // Tests that could not be read are missing from the list: its indices are not the guest's.
    if (!reader.clean()) return;
    check_text(reader, "nonce", report.nonce, id_characters_max);
    if (check_count(reader, "tests", report.tests.size(), tests_max))
        for (std::size_t i = 0; i < report.tests.size(); ++i)
            check_test(reader, fmt::format("tests/{}", i), report.tests[i]);
    check_map(reader, "digests", report.digests, digests_max);
    if (check_count(reader, "counters", report.counters.size(), counters_max))
        for (std::size_t i = 0; i < report.counters.size(); ++i) {
            auto const at = fmt::format("counters/{}/", i);
            check_text(reader, at + "device", report.counters[i].device, id_characters_max);
            check_text(reader, at + "name", report.counters[i].name, id_characters_max);
        }
    check_map(reader, "facts", report.facts, facts_max);
    check_text(reader, "error", report.error, sentence_characters_max);
}

template struct Json<GuestAttachment>;
template struct Json<GuestConfig>;
template struct Json<RunRequest>;
template struct Json<QueuePairEnd>;
template struct Json<SessionRequest>;
template struct Json<MemoryRegion>;
template struct Json<SessionOffer>;
template struct Json<GuestReport>;

}  // namespace vfmgr
