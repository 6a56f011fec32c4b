// SPDX-License-Identifier: Apache-2.0
// GPU memory as the target of the host's transfers: registered by DMA-BUF or by peermem, or copied
// through main memory.
#include "guest-tools/gpu/gpudirect.hpp"

#include <fmt/format.h>

#include <array>

#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/gpu_payload.hpp"
#include "guest-tools/gpu/load_peermem.hpp"

namespace vfmgr::guest::gpu {
namespace {

using verify::Payload;
using verify::payload_chunk_bytes;
using verify::PayloadCheck;
using verify::poison_byte;
using verify::transfer_access;

struct OpenGpu {
    CudaGpu const& gpu;
    GpuContext const& context;
    GpuPayload const& kernels;
};

// The GPU fills and checks.
class OnGpu final : public verify::TransferTarget {
  public:
    OnGpu(OpenGpu const& gpu, GpuBuffer buffer) : gpu_(gpu), buffer_(std::move(buffer)) {}
    MemoryRegion mr() const override { return buffer_.remote(); }
    Result<void> poison(std::uint64_t bytes) override {
        VFMGR_CHECK(buffer_.set(poison_byte, bytes));
        return gpu_.context.synchronize();
    }
    Result<void> fill(Payload const& payload, std::uint64_t bytes) override {
        return gpu_.kernels.fill(payload, buffer_, {0, bytes / payload_chunk_bytes});
    }
    Result<PayloadCheck> check(Payload const& payload, std::uint64_t bytes) override {
        VFMGR_TRY(auto const found,
                  gpu_.kernels.check(payload, buffer_, {0, bytes / payload_chunk_bytes}));
        PayloadCheck checked;
        checked.bytes_checked = bytes;
        checked.mismatches = found.bytes_wrong;
        checked.detail = found.detail;
        return checked;
    }
    Result<bool> flush() override {
        auto const& cuda = gpu_.context.cuda();
        // Staged memory is copied, and a copy is in order.
        if (buffer_.is_staged() || !offers_flush(cuda, gpu_.gpu)) return false;
        VFMGR_CHECK(flush_writes(cuda));
        return true;
    }
    Result<void> arrived(std::uint64_t bytes) override { return buffer_.arrived(bytes); }
    Result<void> leaving(std::uint64_t bytes) override { return buffer_.leaving(bytes); }

  private:
    OpenGpu const gpu_;
    GpuBuffer buffer_;
};

// The test "gpudirect": runs each route's transfers in one run and compares them.

using verify::Measured;
using verify::route_text;

constexpr char const* name = "gpudirect";
constexpr std::uint64_t memory_bytes = 8 << 20;
constexpr std::array routes{Route::dma_buf, Route::dma_buf_vmm, Route::peermem, Route::staged};

// The result of one route.
struct Tried {
    Route route = Route::staged;
    std::optional<Error> refused;  // could not be registered
    Measured made{};               // otherwise
    std::string over{};            // the transport used
    [[nodiscard]] bool passed() const { return !refused && made.result.verdict == Verdict::pass; }
    [[nodiscard]] double figure(char const* which) const {
        auto const found = made.result.figures.find(which);
        return found == made.result.figures.end() ? 0 : found->second;
    }
};

struct Bench {
    verify::StreamHost const& host;
    verify::Endpoint const& endpoint;
    OpenGpu gpu;
    std::chrono::milliseconds window;
    Deadline deadline;
};

Result<Tried> attempt(Bench const& bench, Route route) {
    Tried tried;
    tried.route = route;
    auto buffer = GpuBuffer::allocate(bench.gpu.context, route, bench.endpoint.pd.get(),
                                      memory_bytes, transfer_access);
    if (!buffer) {
        tried.refused = buffer.error();
        return tried;
    }
    OnGpu target(bench.gpu, std::move(*buffer));
    VFMGR_TRY(auto stream, verify::TransferStream::open(bench.host, bench.endpoint,
                                                        StreamKind::gpu_transfer, target.mr()));
    tried.over = stream.over();
    tried.made = verify::run_transfers(stream, target, bench.window, bench.deadline);
    return tried;
}

// "DMA-BUF: 120 MiB/s written, 130 read, nothing stale".
std::string summary(Tried const& tried) {
    if (tried.refused)
        return fmt::format("{}: not available: {}: {}", route_text(tried.route),
                           detail_with_causes(*tried.refused), tried.refused->remedy);
    if (!tried.passed())
        return fmt::format("{}: {}", route_text(tried.route), tried.made.result.detail);
    auto const stale = tried.figure("stale_per_million");
    return fmt::format("{}: {:.0f} MiB/s written, {:.0f} read, {}", route_text(tried.route),
                       tried.figure("write_mib_per_s"), tried.figure("read_mib_per_s"),
                       stale == 0 ? std::string("nothing stale")
                                  : fmt::format("{:.1f} chunks of a million stale", stale));
}

// Lists each transport where they differ: DC may carry one kind of memory and not another.
std::string transports(std::vector<Tried> const& all) {
    std::string text;
    std::string_view last;
    for (auto const& tried : all) {
        if (tried.refused || tried.over == last) continue;
        text += fmt::format("{}{}", text.empty() ? "" : ", then ", tried.over);
        last = tried.over;
    }
    return text;
}

void add(TestResult& result, Tried const& tried) {
    if (tried.refused) return;
    for (auto const& [figure, value] : tried.made.result.figures) {
        if (figure == "orders" || figure == "rounds" || figure == "bytes")
            result.figures[figure] += value;
        else
            result.figures[fmt::format("{}_{}", enum_name(tried.route), figure)] = value;
    }
    result.bytes_checked += tried.made.result.bytes_checked;
}

// Passes when at least one route reaches the GPU. Reports the first of several failures.
void conclude(Bench const& bench, std::vector<Tried> const& all, bool offers, TestResult& result) {
    std::string text;
    Tried const* best = nullptr;
    for (auto const& tried : all) {
        text += (text.empty() ? "" : "; ") + summary(tried);
        if (!tried.refused && !tried.passed() && result.verdict == Verdict::pass) {
            result.verdict = Verdict::fail;
            result.remedy = tried.made.result.remedy;
        }
        if (tried.route != Route::staged && tried.passed() && !best) best = &tried;
    }
    auto const over = transports(all);
    if (best && result.verdict != Verdict::fail) {
        result.detail = fmt::format("the NIC reaches the GPU by {}, {}; {}",
                                    route_text(best->route), over, text);
        return;
    }
    if (!over.empty()) text += "; " + over;
    result.detail = text;
    if (result.verdict == Verdict::fail) return;
    if (!offers) {
        result.verdict = Verdict::not_applicable;
        result.detail =
            "this GPU's driver offers no GPUDirect RDMA, which is a limit of the product, not a "
            "fault of the set-up; " +
            text;
    } else if (bench.endpoint.software) {
        result.verdict = Verdict::skip;
        result.detail = "a software RDMA device can't reach a GPU; " + text;
        result.remedy = "attach a VF whose driver does RDMA itself";
    } else {
        result.verdict = Verdict::fail;
        result.detail = "the NIC does not reach the GPU; " + text;
        result.remedy = all.front().refused ? all.front().refused->remedy : "";
    }
}

Result<Measured> test(FoundGpus const& found, verify::StreamHost const& host,
                      verify::Endpoint const& endpoint, std::chrono::milliseconds window,
                      Deadline deadline) {
    VFMGR_TRY(auto const at, choose_gpu(found.infos));
    VFMGR_TRY(auto const context, GpuContext::open(*found.cuda, found.gpus[at].device));
    VFMGR_TRY(auto const kernels, GpuPayload::load(context));
    auto const& gpu = found.gpus[at];
    Bench const bench{host, endpoint, {gpu, context, kernels}, window / routes.size(), deadline};
    bool const offers = offers_gpudirect(gpu);
    std::vector<Tried> all;
    for (auto const route : routes) {
        if (!offers && route != Route::staged) continue;
        // Skips a route that would be refused for the same reason.
        if (route == Route::dma_buf_vmm && all.back().refused) continue;
        VFMGR_TRY(auto tried, attempt(bench, route));
        all.push_back(std::move(tried));
    }
    auto made = verify::measured(name);
    for (auto const& tried : all) add(made.result, tried);
    conclude(bench, all, offers, made.result);
    return made;
}

Measured not_tested(Verdict verdict, Error const& error) {
    auto made = verify::measured_failure(name, error);
    made.result.verdict = verdict;
    return made;
}

}  // namespace

Measured gpudirect(verify::StreamHost const& host, verify::Endpoint const& endpoint,
                   std::chrono::milliseconds window, Deadline deadline) {
    auto const facts = collect_facts({});
    auto const found = find_gpus(checks::read_machine(facts));
    if (!found)
        return not_tested(
            found.error().problem == Problem::not_found ? Verdict::not_applicable : Verdict::skip,
            found.error());
    auto made = test(*found, host, endpoint, window, deadline);
    if (made) return std::move(*made);
    return not_tested(made.error().problem == Problem::unavailable ? Verdict::skip : Verdict::fail,
                      made.error());
}

}  // namespace vfmgr::guest::gpu
