// SPDX-License-Identifier: Apache-2.0
// A ring in main memory.
#include <optional>
#include <vector>

#include "guest-tools/stream/ring_memory.hpp"
#include "guest-tools/verify/memory.hpp"

namespace vfmgr::stream {
namespace {

class HostRing final : public RingMemory {
  public:
    HostRing(RingShape const& shape, std::size_t bytes)
        : own_(bytes), ring_({own_, 0}, shape.packet_bytes, shape.packets) {}
    HostRing(RingShape const& shape, verify::RegisteredMemory registered)
        : registered_(std::move(registered)),
          ring_({registered_->bytes(), registered_->local_key()}, shape.packet_bytes,
                shape.packets) {}

    RingPlace place() const override { return {}; }
    verify::Sge slot(std::uint32_t index) const override { return ring_.slot(index); }
    Result<void> take(std::span<Arrival const> arrived, Tally& tally) override {
        for (auto const& one : arrived) tally.take(ring_.slot(one.slot).bytes.first(one.bytes));
        return {};
    }

  private:
    std::vector<std::byte> own_;
    std::optional<verify::RegisteredMemory> registered_;
    Ring ring_;
};

}  // namespace

Result<std::unique_ptr<RingMemory>> HostRings::make(RingShape const& shape,
                                                    verify::Endpoint const* endpoint) const {
    auto const bytes = Ring::stride(shape.packet_bytes) * shape.packets;
    if (endpoint == nullptr) return std::make_unique<HostRing>(shape, bytes);
    VFMGR_TRY(auto memory, verify::RegisteredMemory::make(endpoint->pd.get(), bytes,
                                                          IBV_ACCESS_LOCAL_WRITE, "ring"));
    return std::make_unique<HostRing>(shape, std::move(memory));
}

}  // namespace vfmgr::stream
