// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/sender.hpp"

#include "guest-tools/verify/echo.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint32_t usual_mtu = 1500;

}  // namespace

Result<Sender> Sender::open(Options const& options) {
    if (options.over == Over::ud) {
        VFMGR_TRY(auto ud, UdSender::open(
                               {options.local, options.packet_bytes, options.chunk, options.run}));
        auto const bytes = ud.packet_bytes();
        return Sender(Either(std::move(ud)), bytes);
    }
    auto const bytes = options.packet_bytes.value_or(
        static_cast<std::uint32_t>(verify::full_datagram_bytes(usual_mtu, options.to.family)));
    VFMGR_TRY(auto udp,
              UdpSender::open({options.local, options.to, bytes, options.chunk, options.run}));
    return Sender(Either(std::move(udp)), bytes);
}

std::optional<QueuePairEnd> Sender::end() const {
    if (auto const* const ud = std::get_if<UdSender>(&either_)) return ud->end();
    return std::nullopt;
}

Result<void> Sender::aim(Acceptance const& receiver) {
    if (auto* const ud = std::get_if<UdSender>(&either_)) return ud->aim(*receiver.pair);
    return std::get<UdpSender>(either_).aim(*receiver.udp_port);
}

Result<void> Sender::send(std::uint64_t first, std::uint64_t count) {
    return std::visit([&](auto& one) { return one.send(first, count); }, either_);
}

Result<void> Sender::flush() {
    auto* const ud = std::get_if<UdSender>(&either_);
    return ud != nullptr ? ud->flush() : Result<void>{};
}

std::uint64_t Sender::filtered() const {
    auto const* const udp = std::get_if<UdpSender>(&either_);
    return udp != nullptr ? udp->filtered() : 0;
}

}  // namespace vfmgr::stream
