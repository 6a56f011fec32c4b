// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/near.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>

#include "guest-tools/gpu/gpu_bench.hpp"
#include "guest-tools/gpu/gpu_buffer.hpp"
#include "vfmgr/netlink/ip.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::guest::gpu {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::size_t copied_bytes = std::size_t{64} << 20U;
constexpr auto measured_for = 500ms;  // each figure
constexpr std::size_t message_bytes = std::size_t{1} << 20U;
constexpr std::uint32_t outstanding = 16;
constexpr auto completion_wait = 5s;

double gb_per_s(std::uint64_t bytes, steady_clock::duration took) {
    return static_cast<double>(bytes) / 1e9 / std::chrono::duration<double>(took).count();
}

// --- main memory ---

// Main memory that the GPU copies by itself; without the driver's own, pages of this process.
class HostPages {
  public:
    explicit HostPages(Cuda const& cuda) : cuda_(cuda) {
        if (cuda.calls.cuMemHostAlloc && cuda.calls.cuMemFreeHost)
            pinned_ = cuda.calls.cuMemHostAlloc(&memory_, copied_bytes, 0) == cuda_success;
        if (!pinned_) own_.resize(copied_bytes);
    }
    ~HostPages() {
        if (pinned_) cuda_.calls.cuMemFreeHost(memory_);
    }
    HostPages(HostPages const&) = delete;
    HostPages& operator=(HostPages const&) = delete;
    [[nodiscard]] bool pinned() const { return pinned_; }
    [[nodiscard]] std::span<std::byte> bytes() {
        return pinned_ ? std::span(static_cast<std::byte*>(memory_), copied_bytes) : own_;
    }

  private:
    Cuda const& cuda_;
    void* memory_ = nullptr;
    bool pinned_ = false;
    std::vector<std::byte> own_;
};

// Runs it once, because the first copy is slow, and then as often as there is time.
Result<double> copy_rate(std::function<Result<void>()> const& copy) {
    VFMGR_CHECK(copy());
    std::uint64_t bytes = 0;
    auto const begin = steady_clock::now();
    while (steady_clock::now() - begin < measured_for) {
        VFMGR_CHECK(copy());
        bytes += copied_bytes;
    }
    return gb_per_s(bytes, steady_clock::now() - begin);
}

Result<TestResult> measure_copies(Cuda const& cuda, CudaGpu const& gpu) {
    VFMGR_TRY(auto const context, GpuContext::open(cuda, gpu.device));
    VFMGR_TRY(auto const memory, GpuBuffer::allocate(context, Allocation::plain, copied_bytes));
    HostPages pages(cuda);
    VFMGR_TRY(auto const to_gpu, copy_rate([&] { return memory.write(0, pages.bytes()); }));
    VFMGR_TRY(auto const from_gpu, copy_rate([&] { return memory.read(0, pages.bytes()); }));
    auto result =
        passed(fmt::format("{:.4g} GB/s from main memory to the GPU, {:.4g} back{}", to_gpu,
                           from_gpu, pages.pinned() ? "" : ", from pages that are not pinned"));
    result.figures = {{"to_gpu_gb_per_s", to_gpu}, {"from_gpu_gb_per_s", from_gpu}};
    return result;
}

// --- a NIC ---

// Opens the NIC by any of its addresses: each makes a GID.
Result<verify::Endpoint> open_nic(checks::Machine const& machine, PciAddress const& nic) {
    auto const* const device = checks::find_pci(machine, nic);
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const all, list_addresses(socket, steady_clock::now() + completion_wait));
    for (auto const& netdev : device ? device->netdevs() : std::vector<std::string>())
        for (auto const& one : all)
            if (std::cmp_equal(one.ifindex, ::if_nametoindex(netdev.c_str())))
                return verify::open_endpoint({.address = one.address, .ifname = netdev}, 0ms);
    return fail(Problem::unsupported,
                fmt::format("NIC {} has no netdev with an IP address", to_string(nic)),
                "give it one (vf-guest does, for a VF of a network), and run this again");
}

// Two queue pairs of one NIC, connected to each other.
struct Loop {
    verify::QueuePair from, to;

    static Result<Loop> make(verify::Endpoint const& endpoint) {
        verify::QueuePairOptions const size{.sends = outstanding};
        VFMGR_TRY(auto from, verify::QueuePair::make(endpoint, size, 0));
        VFMGR_TRY(auto to, verify::QueuePair::make(
                               endpoint, size, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ));
        VFMGR_CHECK(from.connect(endpoint, to.end()));
        VFMGR_CHECK(to.connect(endpoint, from.end()));
        return Loop{std::move(from), std::move(to)};
    }
    void shut() {
        from.shut(steady_clock::now() + verify::drain_wait);
        to.shut(steady_clock::now() + verify::drain_wait);
    }
    Result<double> rate(verify::TransferDirection direction, verify::RemoteTransfer const& what) {
        std::array<ibv_wc, outstanding> room{};
        std::uint64_t bytes = 0;
        std::uint32_t posted = 0;
        auto const begin = steady_clock::now();
        while (true) {
            bool const goes_on = steady_clock::now() - begin < measured_for;
            for (; goes_on && posted < outstanding; ++posted)
                VFMGR_CHECK(from.transfer(1, direction, what));
            if (posted == 0) return gb_per_s(bytes, steady_clock::now() - begin);
            VFMGR_TRY(auto const done,
                      from.completions().wait(room, steady_clock::now() + completion_wait));
            VFMGR_CHECK(verify::check_completions(done, "a transfer of the GPU's memory"));
            posted -= static_cast<std::uint32_t>(done.size());
            bytes += done.size() * message_bytes;
        }
    }
};

Result<GpuBuffer> reachable(GpuContext const& context, ibv_pd* pd, Route& route) {
    constexpr int access = IBV_ACCESS_LOCAL_WRITE;
    auto made = GpuBuffer::allocate(context, route, pd, message_bytes, access);
    if (made) return made;
    route = Route::peermem;
    auto other = GpuBuffer::allocate(context, route, pd, message_bytes, access);
    return other ? std::move(other) : std::move(made);
}

Result<TestResult> measure_pair(Cuda const& cuda, CudaGpu const& gpu,
                                checks::Machine const& machine, PciAddress const& nic) {
    VFMGR_TRY(auto const endpoint, open_nic(machine, nic));
    VFMGR_TRY(auto const context, GpuContext::open(cuda, gpu.device));
    auto route = Route::dma_buf;
    VFMGR_TRY(auto const memory, reachable(context, endpoint.pd.get(), route));
    constexpr unsigned access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    VFMGR_TRY(auto const host, verify::RegisteredMemory::make(endpoint.pd.get(), message_bytes,
                                                              access, "main memory"));
    VFMGR_TRY(auto loop, Loop::make(endpoint));
    // An address in the GPU's memory: no code here reads or writes there.
    auto* const at = std::bit_cast<std::byte*>(memory.range().address);
    auto const there = host.remote();
    verify::RemoteTransfer const what{
        {{at, message_bytes}, memory.local_key()}, there.address, there.rkey};
    auto const from_gpu = loop.rate(verify::TransferDirection::write, what);
    auto const to_gpu = from_gpu ? loop.rate(verify::TransferDirection::read, what) : from_gpu;
    loop.shut();
    if (!to_gpu) return fail(to_gpu.error());
    auto result = passed(
        fmt::format("{:.4g} GB/s from the GPU by the NIC to main memory, {:.4g} back, by {}{}",
                    *from_gpu, *to_gpu, verify::route_text(route),
                    endpoint.software ? "; a software device: this machine's CPUs did it" : ""));
    result.figures = {{"to_gpu_gb_per_s", *to_gpu}, {"from_gpu_gb_per_s", *from_gpu}};
    return result;
}

// What can't run says nothing against the machine.
TestResult named(std::string name, Result<TestResult> tested) {
    auto result = tested ? std::move(*tested) : not_passed(Verdict::skip, tested.error());
    if (!tested) result.detail = "not run: " + result.detail;
    result.name = std::move(name);
    result.by = Judge::guest;
    return result;
}

}  // namespace

std::vector<TestResult> measure(FoundGpus const& found, checks::Machine const& machine,
                                std::vector<GpuNicPair> const& pairs) {
    std::vector<TestResult> tests;
    for (auto const& gpu : found.gpus)
        tests.push_back(named("copies " + to_string(gpu.pci), measure_copies(*found.cuda, gpu)));
    for (auto const& pair : pairs) {
        auto const gpu = std::ranges::find(found.gpus, pair.gpu, &CudaGpu::pci);
        if (gpu == found.gpus.end()) continue;
        auto const name = fmt::format("pair {} {}", to_string(pair.gpu), to_string(pair.nic));
        if (offers_gpudirect(*gpu))
            tests.push_back(named(name, measure_pair(*found.cuda, *gpu, machine, pair.nic)));
        else
            tests.push_back(named(name, fail(Problem::unsupported, pair.because, pair.remedy)));
    }
    if (pairs.empty())
        tests.push_back(named("pairs", fail(Problem::not_found, "no RDMA device",
                                            "run it in a VM with a VF whose driver is loaded")));
    return tests;
}

}  // namespace vfmgr::guest::gpu
