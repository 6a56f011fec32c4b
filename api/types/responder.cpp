// SPDX-License-Identifier: Apache-2.0
#include "api/types/responder.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

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

// Read only: the token stays with the host that it is for.
template <class F, Of<ResponderTarget> V>
void fields(F& f, V& target) {
    f.value("host", target.place.host);
    f.defaulted("port", target.place.port);
    f.value("fingerprint", target.fingerprint);
    f.value("token", target.token);
}

void check(JsonReader& reader, ResponderTarget const& target) {
    if (!reader.clean()) return;
    if (!valid_host(target.place.host))
        reader.complain("host", "must be a host name or an address");
    if (target.place.port == 0) reader.complain("port", "must be from 1 to 65535");
    if (!is_fingerprint(target.fingerprint))
        reader.complain("fingerprint", "must be a SHA-256 fingerprint: 64 hexadecimal digits");
    check_text(reader, "token", target.token, token_characters_max);
    if (target.token.empty()) reader.complain("token", "must not be empty");
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
template struct Json<RemotePermit>;
template struct Json<SessionOpening>;

}  // namespace vfmgr
