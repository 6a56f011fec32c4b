// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "guest-tools/gpu/gpu_payload.hpp"
#include "guest-tools/traffic/tally.hpp"

namespace vfmgr::guest::gpu {
namespace {

using stream::Arrival;
using stream::arrivals_max;
using stream::Ring;
using stream::RingPlace;
using stream::RingShape;
using verify::Route;

// A batch: the arrivals, followed by the packet numbers that the GPU finds.
constexpr std::size_t numbers_at = arrivals_max * sizeof(Arrival);
constexpr std::size_t batch_bytes = numbers_at + arrivals_max * sizeof(std::uint64_t);
// One thread reads one packet, and one block covers a whole batch.
static_assert(arrivals_max <= threads_per_block);

// Packets are in the GPU's memory. A NIC writes them there directly; a socket writes to a stage in
// main memory, which is as large as what the socket fills at once.
class GpuRing final : public stream::RingMemory {
  public:
    GpuRing(GpuRings const& gpu, RingShape const& shape, GpuBuffer memory, GpuBuffer batch,
            Route route)
        : gpu_(gpu),
          shape_(shape),
          stride_(Ring::stride(shape.packet_bytes)),
          route_(route),
          flushes_(needs_flush(gpu.gpu) && offers_flush(gpu.context.cuda(), gpu.gpu)),
          memory_(std::move(memory)),
          batch_(std::move(batch)),
          stage_(is_staged() ? stride_ * std::min<std::size_t>(arrivals_max, shape.packets) : 0),
          slots_({stage_, 0}, shape.packet_bytes,
                 static_cast<std::uint32_t>(stage_.size() / stride_)) {}

    RingPlace place() const override { return {stream::Memory::gpu, gpu_.gpu.pci, route_}; }

    verify::Sge slot(std::uint32_t index) const override {
        if (is_staged()) return slots_.slot(index);
        // An address in the GPU's memory: no code here reads or writes there.
        auto* const at = std::bit_cast<std::byte*>(memory_.range().address + index * stride_);
        return {{at, shape_.packet_bytes}, memory_.local_key()};
    }

    // A driver's first calls are slow, and a socket would overflow meanwhile.
    Result<void> warm_up() {
        std::array const none{Arrival{}};
        return find(none);
    }

    Result<void> take(std::span<Arrival const> arrived, stream::Tally& tally) override {
        VFMGR_CHECK(find(arrived));
        for (std::size_t i = 0; i < arrived.size(); ++i) {
            bool const ours = numbers_[i] < stream::sequence_max;
            tally.take(arrived[i].bytes, ours ? std::optional(numbers_[i]) : std::nullopt);
        }
        return {};
    }

  private:
    bool is_staged() const { return route_ == Route::staged; }

    // Makes the packets visible to the GPU in their slots. Flushes between the completion and the
    // kernel (GPUDIRECT.md#flush). Where a flush is needed and not offered, a packet that is not
    // visible yet to the GPU counts as foreign, and as lost.
    Result<void> arrive(std::span<Arrival const> arrived) {
        if (is_staged()) return copy(arrived);
        return flushes_ ? flush_writes(gpu_.context.cuda()) : Result<void>{};
    }

    // Copies adjacent slots together: a batch is one copy, or two at the end of the stage.
    Result<void> copy(std::span<Arrival const> arrived) {
        while (!arrived.empty()) {
            auto const first = arrived.front().slot;
            auto const room = slots_.count() - first % slots_.count();
            std::size_t count = 1;
            while (count < arrived.size() && count < room && arrived[count].slot == first + count)
                ++count;
            std::span const whole(slots_.slot(first).bytes.data(), count * stride_);
            VFMGR_CHECK(memory_.write(first * stride_, whole));
            arrived = arrived.subspan(count);
        }
        return {};
    }

    // Finds the number of each packet, or a value that is not a number.
    Result<void> find(std::span<Arrival const> arrived) {
        VFMGR_CHECK(arrive(arrived));
        VFMGR_CHECK(batch_.write(0, std::as_bytes(arrived)));
        auto const batch = batch_.range().address;
        VFMGR_CHECK(gpu_.context.cuda().launch(
            gpu_.packets, 1, memory_.range().address, std::uint64_t{stride_}, batch,
            std::uint64_t{arrived.size()}, shape_.run, batch + numbers_at));
        // The read waits for the kernel, which was started on the same stream.
        return batch_.read(numbers_at,
                           std::as_writable_bytes(std::span(numbers_).first(arrived.size())));
    }

    GpuRings const& gpu_;
    RingShape const shape_;
    std::size_t const stride_;
    Route const route_;
    bool const flushes_;
    GpuBuffer memory_;
    GpuBuffer batch_;
    std::vector<std::byte> stage_;  // empty where the NIC writes directly
    Ring slots_;                    // of the stage
    std::array<std::uint64_t, arrivals_max> numbers_{};
};

Error no_room(GpuRings const& gpu, std::size_t bytes, Error error) {
    if (error.problem != Problem::limit_exceeded) return error;
    auto const free = gpu.context.free_bytes();
    error.detail =
        fmt::format("the receiver's ring would have {} bytes, but its GPU {} has {} free", bytes,
                    to_string(gpu.gpu.pci), free.value_or(0));
    error.remedy =
        "give the receiver fewer --chunks or --ring-bytes, stop the programs that use the GPU's "
        "memory (nvidia-smi lists them), or receive with --memory host";
    return error;
}

Error not_offered(CudaGpu const& gpu) {
    return {Problem::unsupported,
            fmt::format("{} at {} offers no GPUDirect RDMA, so no NIC can write to it: a limit "
                        "of the product, as of every GeForce, not a fault of the set-up",
                        gpu.name, to_string(gpu.pci)),
            "stream over udp, whose packets are copied to the GPU, or receive with --memory host"};
}

// Never uses main memory: a user who requests GPU memory needs to know whether the NIC reaches it.
Result<Route> let_nic_write(GpuRings const& gpu, GpuBuffer& memory,
                            verify::Endpoint const& endpoint) {
    constexpr int access = IBV_ACCESS_LOCAL_WRITE;
    auto const dma_buf = memory.reach(Route::dma_buf, endpoint.pd.get(), access);
    if (dma_buf) return Route::dma_buf;
    auto const peermem = memory.reach(Route::peermem, endpoint.pd.get(), access);
    if (peermem) return Route::peermem;
    auto const remedy = endpoint.software
                            ? "attach a VF whose driver does RDMA itself, since a software RDMA "
                              "device can't reach a GPU; stream over udp"
                            : dma_buf.error().remedy;
    return fail(
        Problem::unsupported,
        fmt::format("{} can't write to the memory of GPU {}: by DMA-BUF: {}; by "
                    "nvidia-peermem: {}",
                    endpoint.device, to_string(gpu.gpu.pci), detail_with_causes(dma_buf.error()),
                    detail_with_causes(peermem.error())),
        remedy + ", or receive with --memory host");
}

}  // namespace

Result<std::unique_ptr<GpuRings>> GpuRings::open(FoundGpus found, std::size_t at) {
    auto const& cuda = *found.cuda;
    auto gpu = found.gpus[at];
    VFMGR_TRY(auto context, GpuContext::open(cuda, gpu.device));
    VFMGR_TRY(auto module, GpuModule::load(cuda));
    VFMGR_TRY(auto* const packets, module.kernel("vfmgr_packets"));
    return std::make_unique<GpuRings>(
        GpuRings{std::move(found), std::move(gpu), std::move(context), std::move(module), packets});
}

Result<std::unique_ptr<stream::RingMemory>> GpuRings::make(stream::RingShape const& shape,
                                                           verify::Endpoint const* endpoint) const {
    if (endpoint != nullptr && !offers_gpudirect(gpu)) return fail(not_offered(gpu));
    auto const bytes = Ring::stride(shape.packet_bytes) * shape.packets;
    auto memory = GpuBuffer::allocate(context, Allocation::plain, bytes);
    if (!memory) return fail(no_room(*this, bytes, std::move(memory.error())));
    VFMGR_TRY(auto batch, GpuBuffer::allocate(context, Allocation::plain, batch_bytes));
    auto route = Route::staged;
    if (endpoint != nullptr) {
        VFMGR_TRY(route, let_nic_write(*this, *memory, *endpoint));
    }
    auto ring =
        std::make_unique<GpuRing>(*this, shape, std::move(*memory), std::move(batch), route);
    VFMGR_CHECK(ring->warm_up());
    return ring;
}

}  // namespace vfmgr::guest::gpu
