// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/receiver.hpp"

namespace vfmgr::stream {

// Also runs before a sender connects: the user who starts a receiver is there to read why it can't.
Result<void> Receiver::check(Options const& options, Over over) {
    if (over == Over::udp) return {};
    VFMGR_TRY(auto const endpoint,
              verify::open_endpoint({options.local, {}}, verify::endpoint_wait));
    VFMGR_CHECK(options.rings.make({0, endpoint.path_mtu, 1}, &endpoint));
    return {};
}

Result<Receiver> Receiver::open(Options const& options, Opening const& opening) {
    if (opening.over == Over::ud) {
        VFMGR_TRY(auto ud, UdReceiver::open(options.local, options.ring, options.rings, opening));
        return Receiver(Either(std::move(ud)));
    }
    VFMGR_TRY(auto const packets, stream::ring_packets(options.ring, opening, std::nullopt));
    RingShape const shape{run_number(opening.run), opening.packet_bytes, packets};
    VFMGR_TRY(auto udp, UdpReceiver::open({options.local, options.port, shape}, options.rings));
    return Receiver(Either(std::move(udp)));
}

Acceptance Receiver::acceptance() const {
    Acceptance made;
    if (auto const* const udp = std::get_if<UdpReceiver>(&either_))
        made.udp_port = udp->port();
    else
        made.pair = std::get<UdReceiver>(either_).end();
    return made;
}

int Receiver::fd() const {
    return std::visit([](auto const& one) { return one.fd(); }, either_);
}

Result<std::size_t> Receiver::take(Tally& tally) {
    return std::visit([&](auto& one) { return one.take(tally); }, either_);
}

Result<void> Receiver::arm() {
    auto* const ud = std::get_if<UdReceiver>(&either_);
    return ud != nullptr ? ud->arm() : Result<void>{};
}

Result<void> Receiver::check() const {
    auto const* const ud = std::get_if<UdReceiver>(&either_);
    return ud != nullptr ? ud->check() : Result<void>{};
}

std::optional<std::uint64_t> Receiver::lost() {
    auto* const udp = std::get_if<UdpReceiver>(&either_);
    return udp != nullptr ? udp->lost() : std::nullopt;
}

std::uint32_t Receiver::ring_packets() const {
    return std::visit([](auto const& one) { return one.ring_packets(); }, either_);
}

RingPlace Receiver::ring_place() const {
    return std::visit([](auto const& one) { return one.ring_place(); }, either_);
}

}  // namespace vfmgr::stream
