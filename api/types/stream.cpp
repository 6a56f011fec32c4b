// SPDX-License-Identifier: Apache-2.0
#include "api/types/stream.hpp"

#include "api/types/json.hpp"

namespace vfmgr {
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

template struct Json<DcTargetEnd>;
template struct Json<StreamRequest>;
template struct Json<StreamOffer>;

}  // namespace vfmgr
