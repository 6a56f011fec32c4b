// SPDX-License-Identifier: Apache-2.0
// What the guest plane and responders send: turns, sessions, streams, permits. Values; any thread.
#include "api/types/guest.hpp"

#include <algorithm>
#include <bit>

#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {

template <class F, Of<Turn> V>
void fields(F& f, V& turn) {
    f.value("position", turn.position);
    f.value("seconds", turn.seconds);
    f.value("own", turn.own);
}

template struct Json<Turn>;

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
    f.maybe("mac", attachment.mac);
    f.maybe("guid", attachment.guid);
    f.maybe("pkey", attachment.pkey);
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

template <class F, Of<SubnetEnd> V>
void fields(F& f, V& end) {
    f.value("lid", end.lid);
    f.value("pkey", end.pkey);
    f.defaulted("grh", end.grh);
}

template <class F, Of<QueuePairEnd> V>
void fields(F& f, V& end) {
    f.value("gid", end.gid);
    f.value("qp_num", end.qp_num);
    f.value("psn", end.psn);
    f.value("path_mtu", end.path_mtu);
    f.defaulted("reads_max", end.reads_max);
    f.maybe("subnet", end.subnet);
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

void check(JsonReader& reader, GuestAttachment const& attachment) {
    if (reader.clean() && attachment.mac.has_value() == attachment.guid.has_value())
        reader.complain("mac", "must be given, or guid instead");
}

void check(JsonReader& reader, SubnetEnd const& end) {
    constexpr std::uint16_t unicast_max = 0xbfff;  // above are multicast and the permissive LID
    if (!reader.clean()) return;
    if (end.lid < 1 || end.lid > unicast_max) reader.complain("lid", "must be from 1 to 49151");
    if ((end.pkey & 0x7fffU) == 0) reader.complain("pkey", "must have one of the lower 15 bits");
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
            check_test(reader, reader.member_of("tests", i), report.tests[i]);
    check_map(reader, "digests", report.digests, digests_max);
    if (check_count(reader, "counters", report.counters.size(), counters_max))
        for (std::size_t i = 0; i < report.counters.size(); ++i) {
            auto const at = reader.member_of("counters", i) + "/";
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
template struct Json<SessionOffer>;
template struct Json<GuestReport>;

namespace {

// Limits of a guest's request; the host's answer has the same shape.
constexpr std::uint32_t receives_max = 1024;
constexpr std::size_t pairs_max = 16;

}  // namespace

template <class F, Of<DcTargetEnd> V>
void fields(F& f, V& target) {
    f.value("qp_num", target.qp_num);
    f.value("key", target.key);
}

template <class F, Of<StreamRequest> V>
void fields(F& f, V& request) {
    f.value("kind", request.kind);
    f.value("message_bytes", request.message_bytes);
    f.defaulted("depth", request.depth);
    f.value("pairs", request.pairs);
    f.nullable("back", request.back);
    f.maybe("dct", request.dct);
}

template <class F, Of<StreamOffer> V>
void fields(F& f, V& offer) {
    f.value("stream", offer.stream);
    f.value("pairs", offer.pairs);
    f.value("memory", offer.memory);
    f.value("seconds", offer.seconds);
    f.maybe("cm_port", offer.cm_port);
    f.maybe("seed", offer.seed);
    f.maybe("transport", offer.transport);
    f.maybe("transport_reason", offer.transport_reason);
}

void check(JsonReader& reader, DcTargetEnd const& target) {
    constexpr std::uint32_t bits24 = 0xffffff;
    if (reader.clean() && target.qp_num > bits24)
        reader.complain("qp_num", "must fit into 24 bits");
}

void check(JsonReader& reader, StreamRequest const& request) {
    if (!reader.clean()) return;
    if (request.message_bytes < 1 || request.message_bytes > stream_message_bytes_max)
        reader.complain("message_bytes",
                        fmt::format("must be from 1 to {}", stream_message_bytes_max));
    if (request.depth < 1 || request.depth > receives_max)
        reader.complain("depth", fmt::format("must be from 1 to {}", receives_max));
    bool const by_cm = request.kind == StreamKind::cm_ping;
    if (by_cm && (!request.pairs.empty() || request.message_bytes > cm_bytes_max))
        reader.complain("kind",
                        fmt::format("cm_ping has no pairs and 1 to {} bytes", cm_bytes_max));
    if (!by_cm && (request.pairs.empty() || request.pairs.size() > pairs_max))
        reader.complain("pairs", fmt::format("must be from 1 to {}", pairs_max));
    bool const transfers = is_transfer(request.kind);
    if (transfers && request.message_bytes % transfer_chunk_bytes != 0)
        reader.complain("message_bytes", fmt::format("must be a multiple of {} for a transfer",
                                                     transfer_chunk_bytes));
    bool const back = transfers || request.kind == StreamKind::write_echo;
    if (back && (!request.back || request.pairs.size() != 1 ||
                 request.back->length < request.message_bytes))
        reader.complain("back",
                        fmt::format("must be a region of message_bytes for a {} of one pair",
                                    enum_name(request.kind)));
    bool const fits = request.message_bytes >= ud_bytes_min &&
                      request.message_bytes <= ud_bytes_max && request.pairs.size() == 1;
    if (request.kind == StreamKind::ud_echo && !fits)
        reader.complain("kind", fmt::format("ud_echo has one pair and {} to {} bytes", ud_bytes_min,
                                            ud_bytes_max));
    if (!back && request.back) reader.complain("back", "must be left out for this kind");
    if (!transfers && request.dct) reader.complain("dct", "must be left out for this kind");
}

template struct Json<StreamRequest>;
template struct Json<StreamOffer>;

namespace {

constexpr std::size_t word_characters_max = 64;
constexpr std::size_t token_characters_max = 256;
constexpr std::uint32_t mtu_min = 68;  // RFC 791
constexpr std::uint32_t mtu_max = 65535;

// Accepts "abcd…" or "AB:CD:…".
bool is_fingerprint(std::string_view text) {
    auto const digits = [](char ch) { return ch != ':'; };
    return std::ranges::count_if(text, digits) == 64 &&
           text.find_first_not_of("0123456789abcdefABCDEF:") == std::string_view::npos;
}

void check_mtu(JsonReader& reader, std::uint32_t mtu) {
    if (mtu < mtu_min || mtu > mtu_max)
        reader.complain("mtu", fmt::format("must be from {} to {}", mtu_min, mtu_max));
}

}  // namespace

template <class F, Of<ResponderInfo> V>
void fields(F& f, V& info) {
    f.value("version", info.version);
    f.value("address", info.address);
    f.value("echo_port", info.echo_port);
    f.nullable("mac", info.mac);
    f.value("mtu", info.mtu);
    f.value("rdma_device", info.rdma_device);
}

template <class F, Of<RemotePermit> V>
void fields(F& f, V& permit) {
    f.value("attachment", permit.attachment);
    f.value("run", permit.run);
    f.value("nonce", permit.nonce);
    f.nullable("vf_mac", permit.vf_mac);
    f.maybe("vf_guid", permit.vf_guid);
    f.maybe("pkey", permit.pkey);
    f.value("peer_address", permit.peer_address);
    f.value("mtu", permit.mtu);
    f.value("rdma", permit.rdma);
    f.maybe("dscp", permit.dscp);
    f.nullable("path", permit.path);
    f.defaulted("profile", permit.profile);
    f.defaulted("vf_tx_rate_mbps", permit.vf_tx_rate_mbps);
}

template <class F, Of<SessionOpening> V>
void fields(F& f, V& opening) {
    f.value("permit", opening.permit);
    f.value("request", opening.request);
}

// Only ever read, never written: the token stays with the host that it is for.
template <class F, Of<ResponderTarget> V>
void fields(F& f, V& target) {
    f.value("host", target.place.host);
    f.defaulted("port", target.place.port);
    f.value("fingerprint", target.fingerprint);
    f.value("token", target.token);
}

void check(JsonReader& reader, ResponderTarget const& target) {
    if (reader.clean("host") && !valid_host(target.place.host))
        reader.complain("host", "must be a host name or an address");
    if (reader.clean("port") && target.place.port == 0)
        reader.complain("port", "must be from 1 to 65535");
    if (reader.clean("fingerprint") && !is_fingerprint(target.fingerprint))
        reader.complain("fingerprint", "must be a SHA-256 fingerprint: 64 hexadecimal digits");
    check_text(reader, "token", target.token, token_characters_max);
    if (reader.clean("token") && target.token.empty())
        reader.complain("token", "must not be empty");
}

void check(JsonReader& reader, ResponderInfo const& info) {
    if (!reader.clean()) return;
    check_text(reader, "version", info.version, word_characters_max);
    check_text(reader, "rdma_device", info.rdma_device, word_characters_max);
    check_mtu(reader, info.mtu);
}

void check(JsonReader& reader, RemotePermit const& permit) {
    if (!reader.clean()) return;
    check_text(reader, "attachment", permit.attachment, word_characters_max);
    check_text(reader, "run", permit.run, word_characters_max);
    check_text(reader, "nonce", permit.nonce, word_characters_max);
    check_mtu(reader, permit.mtu);
    if (permit.dscp.value_or(0) > dscp_max) reader.complain("dscp", "must be from 0 to 63");
}

template void Json<ResponderTarget>::read(JsonReader&, ResponderTarget&);
template struct Json<ResponderInfo>;
template struct Json<SessionOpening>;

}  // namespace vfmgr
