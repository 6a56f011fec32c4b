// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/guest_stream.hpp"

namespace vfmgr::verify {
namespace {

Result<void> check(StreamOffer const& offer, StreamSize const& size) {
    if (offer.pairs.size() == size.pairs &&
        offer.memory.length >= std::uint64_t{size.message_bytes} * size.pairs)
        return {};
    return fail(Problem::invalid_request, "the host's stream is not what the guest requested",
                "use the same version on VM and host");
}

}  // namespace

Result<GuestStream> GuestStream::open(StreamHost const& host, Endpoint const& endpoint,
                                      StreamKind kind, StreamSize const& size) {
    auto* const pd = endpoint.pd.get();
    constexpr unsigned local = IBV_ACCESS_LOCAL_WRITE;
    // The host writes here only to answer writes.
    unsigned remote = 0;
    if (kind == StreamKind::write_echo) remote = IBV_ACCESS_REMOTE_WRITE;
    auto const bytes = std::size_t{size.message_bytes} * size.pairs;
    VFMGR_TRY(auto memory,
              RegisteredMemory::make(pd, bytes, local | write_order(kind), "messages"));
    bool const datagrams = kind == StreamKind::ud_echo;
    auto const room = size.message_bytes + (datagrams ? ud_header_bytes : 0);
    VFMGR_TRY(auto back, RegisteredMemory::make(pd, room, local | remote, "answers"));
    QueuePairOptions const options{
        .transport = datagrams ? Transport::ud : Transport::rc,
        .sends = size.depth,
        .receives = kind == StreamKind::send_echo || datagrams ? 2U : 0U};
    VFMGR_TRY(auto all, QueuePairs::make(endpoint, options, remote, size.pairs));
    StreamRequest request{kind, size.message_bytes, size.depth, {}, {}};
    for (auto const& pair : all.pairs) request.pairs.push_back(pair.end());
    if (kind == StreamKind::write_echo) request.back = back.remote();
    GuestStream stream(host, size, pd, std::move(memory), std::move(back), std::move(all));
    VFMGR_TRY(stream.offer_, host.open(request));
    VFMGR_CHECK(check(stream.offer_, size));
    for (std::size_t i = 0; i < size.pairs; ++i)
        VFMGR_CHECK(stream.all_.pairs[i].connect(endpoint, stream.offer_.pairs[i]));
    return stream;
}

GuestStream::~GuestStream() {
    if (all_.pairs.empty()) return;  // moved from
    all_.shut();
    if (!offer_.stream.empty()) host_.close(offer_.stream);
}

RemoteTransfer GuestStream::message(std::size_t pair) const {
    auto const offset = pair * size_.message_bytes;
    return {memory_.sge(offset, size_.message_bytes), offer_.memory.address + offset,
            offer_.memory.rkey};
}

}  // namespace vfmgr::verify
