// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/source.hpp"

namespace vfmgr::stream {

// Not only when a sender has come: whoever starts a receiver is there to read why it can't.
Result<void> Source::check(Wish const& wish, Over over) {
    if (over == Over::udp) return {};
    VFMGR_TRY(auto const port, verify::find_port({wish.local, {}}, verify::port_wait));
    VFMGR_TRY(auto const domain, verify::make_domain(port));
    RingNic const nic{port, domain.get()};
    VFMGR_CHECK(wish.rings.make({0, port.path_mtu, 1}, &nic));
    return {};
}

Result<Source> Source::open(Wish const& wish, Opening const& opening) {
    if (opening.over == Over::ud) {
        VFMGR_TRY(auto ud, UdSource::open(wish.local, wish.ring, wish.rings, opening));
        return Source(Either(std::move(ud)));
    }
    VFMGR_TRY(auto const packets, stream::ring_packets(wish.ring, opening, std::nullopt));
    RingShape const shape{run_number(opening.run), opening.packet_bytes, packets};
    VFMGR_TRY(auto udp, UdpSource::open({wish.local, wish.port, shape}, wish.rings));
    return Source(Either(std::move(udp)));
}

Acceptance Source::acceptance() const {
    Acceptance made;
    if (auto const* const udp = std::get_if<UdpSource>(&either_))
        made.udp_port = udp->port();
    else
        made.pair = std::get<UdSource>(either_).end();
    return made;
}

int Source::fd() const {
    return std::visit([](auto const& one) { return one.fd(); }, either_);
}

Result<std::size_t> Source::take(Tally& tally) {
    return std::visit([&](auto& one) { return one.take(tally); }, either_);
}

Result<void> Source::arm() {
    auto* const ud = std::get_if<UdSource>(&either_);
    return ud != nullptr ? ud->arm() : Result<void>{};
}

Result<void> Source::check() const {
    auto const* const ud = std::get_if<UdSource>(&either_);
    return ud != nullptr ? ud->check() : Result<void>{};
}

std::optional<std::uint64_t> Source::lost() {
    auto* const udp = std::get_if<UdpSource>(&either_);
    return udp != nullptr ? udp->lost() : std::nullopt;
}

std::uint32_t Source::ring_packets() const {
    return std::visit([](auto const& one) { return one.ring_packets(); }, either_);
}

RingPlace Source::ring_place() const {
    return std::visit([](auto const& one) { return one.ring_place(); }, either_);
}

}  // namespace vfmgr::stream
