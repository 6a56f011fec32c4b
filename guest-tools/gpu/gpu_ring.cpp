// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "guest-tools/gpu/dma_buf.hpp"
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

constexpr char const* or_host = ", or receive with --memory host";

// A batch: the arrivals, followed by the packet numbers that the GPU finds.
constexpr std::size_t numbers_at = arrivals_max * sizeof(Arrival);
constexpr std::size_t batch_bytes = numbers_at + arrivals_max * sizeof(std::uint64_t);
// One thread reads one packet, and one block covers a whole batch.
static_assert(arrivals_max <= payload_threads);

// What all rings of one GPU share.
struct RingGpu {
    CudaGpu const& gpu;
    GpuContext const& context;
    CudaFunction packets;
};

// Packets are in the GPU's memory; the derived classes define how they get there.
class RingOnGpu : public stream::RingMemory {
  public:
    RingPlace place() const override { return {stream::Memory::gpu, gpu_.gpu.pci, route_}; }

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

  protected:
    RingOnGpu(RingGpu const& gpu, RingShape const& shape, GpuMemory memory, GpuMemory batch,
              Route route)
        : gpu_(gpu),
          shape_(shape),
          stride_(Ring::stride(shape.packet_bytes)),
          route_(route),
          memory_(std::move(memory)),
          batch_(std::move(batch)) {}
    // Makes the packets visible to the GPU in their slots.
    virtual Result<void> arrive(std::span<Arrival const> arrived) = 0;

    RingGpu const gpu_;
    RingShape const shape_;
    std::size_t const stride_;
    Route const route_;
    GpuMemory memory_;

  private:
    // Finds the number of each packet, or a value that is not a number.
    Result<void> find(std::span<Arrival const> arrived) {
        VFMGR_CHECK(arrive(arrived));
        VFMGR_CHECK(batch_.write(0, std::as_bytes(arrived)));
        VFMGR_CHECK(check(arrived.size()));
        // The read waits for the kernel, which was started on the same stream.
        return batch_.read(numbers_at,
                           std::as_writable_bytes(std::span(numbers_).first(arrived.size())));
    }

    Result<void> check(std::uint64_t count) {
        auto memory = memory_.range().address;
        std::uint64_t stride = stride_;
        auto arrived = batch_.range().address;
        auto run = shape_.run;
        auto numbers = arrived + numbers_at;
        std::array<void*, 6> arguments{&memory, &stride, &arrived, &count, &run, &numbers};
        auto const& cuda = gpu_.context.cuda();
        return cuda.done("cuLaunchKernel",
                         cuda.calls.cuLaunchKernel(gpu_.packets, 1, 1, 1, payload_threads, 1, 1, 0,
                                                   nullptr, arguments.data(), nullptr));
    }

    GpuMemory batch_;
    std::array<std::uint64_t, arrivals_max> numbers_{};
};

// The NIC writes to the GPU's memory directly.
class DirectRing final : public RingOnGpu {
  public:
    DirectRing(RingGpu const& gpu, RingShape const& shape, GpuMemory memory, GpuMemory batch,
               Route route, verify::VerbsMr mr)
        : RingOnGpu(gpu, shape, std::move(memory), std::move(batch), route),
          flushes_(gpu.gpu.writes_ordering.value_or(0) < writes_ordering_owner &&
                   offers_flush(gpu.context.cuda(), gpu.gpu)),
          mr_(std::move(mr)) {}

    // Returns an address of the GPU's, which no code here reads or writes.
    verify::Sge slot(std::uint32_t index) const override {
        auto* const at = std::bit_cast<std::byte*>(memory_.range().address + index * stride_);
        return {{at, shape_.packet_bytes}, mr_->lkey};
    }

  protected:
    // Flushes between the completion and the kernel (GPUDIRECT.md#flush). Where a flush is needed
    // and not offered, a packet that is not visible yet to the GPU counts as foreign, and as lost.
    Result<void> arrive(std::span<Arrival const>) override {
        return flushes_ ? flush_writes(gpu_.context.cuda()) : Result<void>{};
    }

  private:
    bool flushes_;
    verify::VerbsMr mr_;  // destroyed before the memory
};

// A socket writes to main memory, into a stage as large as what it fills at once.
class StagedRing final : public RingOnGpu {
  public:
    StagedRing(RingGpu const& gpu, RingShape const& shape, GpuMemory memory, GpuMemory batch)
        : RingOnGpu(gpu, shape, std::move(memory), std::move(batch), Route::staged),
          stage_(stride_ * std::min<std::size_t>(arrivals_max, shape.packets)),
          slots_({stage_, 0}, shape.packet_bytes,
                 static_cast<std::uint32_t>(stage_.size() / stride_)) {}

    verify::Sge slot(std::uint32_t index) const override { return slots_.slot(index); }

  protected:
    // Copies adjacent slots together: a batch is one copy, or two at the end of the stage.
    Result<void> arrive(std::span<Arrival const> arrived) override {
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

  private:
    std::vector<std::byte> stage_;
    Ring slots_;
};

Error no_room(RingGpu const& gpu, std::size_t bytes, Error error) {
    if (error.problem != Problem::limit_exceeded) return error;
    auto const free = gpu.context.free_bytes();
    error.detail =
        fmt::format("the receiver's ring would have {} bytes, but its GPU {} has {} free", bytes,
                    to_string(gpu.gpu.pci), free.value_or(0));
    error.remedy =
        "give the receiver fewer --chunks or --ring-bytes, stop the programs that use the GPU's "
        "memory (nvidia-smi lists them)";
    error.remedy += or_host;
    return error;
}

Error not_offered(CudaGpu const& gpu) {
    Error error{Problem::unsupported,
                fmt::format("{} at {} offers no GPUDirect RDMA, so no NIC can write to it: a limit "
                            "of the product, as of every GeForce, not a fault of the set-up",
                            gpu.name, to_string(gpu.pci)),
                "stream over udp, whose packets are copied to the GPU"};
    error.remedy += or_host;
    return error;
}

struct Registered {
    Route route;
    verify::VerbsMr mr;
};

// Never uses main memory: a user who requests GPU memory needs to know whether the NIC reaches it.
Result<Registered> register_ring(RingGpu const& gpu, GpuRange range,
                                 verify::Endpoint const& endpoint) {
    constexpr int access = IBV_ACCESS_LOCAL_WRITE;
    auto dma_buf = register_dma_buf(endpoint.pd.get(), gpu.context, range, access);
    if (dma_buf) return Registered{Route::dma_buf, std::move(*dma_buf)};
    auto peermem = register_peermem(endpoint.pd.get(), range, access);
    if (peermem) return Registered{Route::peermem, std::move(*peermem)};
    Error error{
        Problem::unsupported,
        fmt::format("{} can't write to the memory of GPU {}: by DMA-BUF: {}; by "
                    "nvidia-peermem: {}",
                    endpoint.device, to_string(gpu.gpu.pci), detail_with_causes(dma_buf.error()),
                    detail_with_causes(peermem.error())),
        endpoint.software ? "attach a VF whose driver does RDMA itself, since a software RDMA "
                            "device can't reach a GPU; stream over udp"
                          : dma_buf.error().remedy};
    error.remedy += or_host;
    return fail(std::move(error));
}

}  // namespace

Result<std::unique_ptr<GpuRings>> GpuRings::open(FoundGpus found, std::size_t at) {
    auto const& cuda = *found.cuda;
    auto gpu = found.gpus[at];
    VFMGR_TRY(auto context, GpuContext::open(cuda, gpu.device));
    VFMGR_TRY(auto module, GpuModule::load(cuda));
    VFMGR_TRY(auto* const packets, module.kernel("vfmgr_packets"));
    return std::unique_ptr<GpuRings>(new GpuRings(std::move(found), std::move(gpu),
                                                  std::move(context), std::move(module), packets));
}

Result<std::unique_ptr<stream::RingMemory>> GpuRings::make(stream::RingShape const& shape,
                                                           verify::Endpoint const* endpoint) const {
    RingGpu const gpu{gpu_, context_, packets_};
    if (endpoint != nullptr && !offers_gpudirect(gpu_)) return fail(not_offered(gpu_));
    auto const bytes = Ring::stride(shape.packet_bytes) * shape.packets;
    auto memory = GpuMemory::allocate(context_, Allocation::plain, bytes);
    if (!memory) return fail(no_room(gpu, bytes, std::move(memory.error())));
    VFMGR_TRY(auto batch, GpuMemory::allocate(context_, Allocation::plain, batch_bytes));
    std::unique_ptr<RingOnGpu> ring;
    if (endpoint == nullptr) {
        ring = std::make_unique<StagedRing>(gpu, shape, std::move(*memory), std::move(batch));
    } else {
        VFMGR_TRY(auto registered, register_ring(gpu, {memory->range().address, bytes}, *endpoint));
        ring = std::make_unique<DirectRing>(gpu, shape, std::move(*memory), std::move(batch),
                                            registered.route, std::move(registered.mr));
    }
    VFMGR_CHECK(ring->warm_up());
    return ring;
}

}  // namespace vfmgr::guest::gpu
