// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/sink.hpp"

#include "guest-tools/verify/echo.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint32_t usual_mtu = 1500;

}  // namespace

Result<Sink> Sink::open(Wish const& wish) {
    if (wish.over == Over::ud) {
        VFMGR_TRY(auto ud, UdSink::open({wish.local, wish.packet_bytes, wish.chunk, wish.run}));
        auto const bytes = ud.packet_bytes();
        return Sink(Either(std::move(ud)), bytes);
    }
    auto const bytes = wish.packet_bytes.value_or(
        static_cast<std::uint32_t>(verify::full_datagram_bytes(usual_mtu, wish.to.family)));
    VFMGR_TRY(auto udp, UdpSink::open({wish.local, wish.to, bytes, wish.chunk, wish.run}));
    return Sink(Either(std::move(udp)), bytes);
}

std::optional<QueuePairEnd> Sink::end() const {
    if (auto const* const ud = std::get_if<UdSink>(&either_)) return ud->end();
    return std::nullopt;
}

Result<void> Sink::aim(Acceptance const& receiver) {
    if (auto* const ud = std::get_if<UdSink>(&either_)) return ud->aim(*receiver.pair);
    return std::get<UdpSink>(either_).aim(*receiver.udp_port);
}

Result<void> Sink::send(std::uint64_t first, std::uint64_t count) {
    return std::visit([&](auto& one) { return one.send(first, count); }, either_);
}

Result<void> Sink::flush() {
    auto* const ud = std::get_if<UdSink>(&either_);
    return ud != nullptr ? ud->flush() : Result<void>{};
}

std::uint64_t Sink::filtered() const {
    auto const* const udp = std::get_if<UdpSink>(&either_);
    return udp != nullptr ? udp->filtered() : 0;
}

}  // namespace vfmgr::stream
