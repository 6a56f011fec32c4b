// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/source.hpp"

namespace vfmgr::stream {

Result<void> Source::check_local(IpAddress const& local, Over over) {
    if (over == Over::ud) VFMGR_CHECK(verify::find_port({local, {}}, verify::port_wait));
    return {};
}

Result<Source> Source::open(IpAddress const& local, std::uint16_t port, RingWish const& ring,
                            Opening const& opening) {
    if (opening.over == Over::ud) {
        VFMGR_TRY(auto ud, UdSource::open(local, ring, opening));
        return Source(Either(std::move(ud)));
    }
    VFMGR_TRY(auto const packets, stream::ring_packets(ring, opening, std::nullopt));
    VFMGR_TRY(auto udp, UdpSource::open({local, port, opening.packet_bytes, packets}));
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

}  // namespace vfmgr::stream
