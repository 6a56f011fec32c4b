// SPDX-License-Identifier: Apache-2.0
// The test "registration": whether the RDMA devices of this machine register the GPU's memory, and
// release it again. Only a transfer proves that it works (gpudirect.cpp).
#include <fmt/format.h>

#include <cerrno>

#include "guest-tools/gpu/gpu_bench.hpp"
#include "guest-tools/gpu/gpu_mr.hpp"
#include "guest-tools/verify/device.hpp"
#include "guest-tools/verify/faults.hpp"

namespace vfmgr::guest::gpu {
namespace {

constexpr std::array registered_sizes{std::uint64_t{4} << 10, round_bytes, std::uint64_t{2} << 20,
                                      std::uint64_t{32} << 20};
constexpr int nic_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct Way {
    char const* text;
    Allocation how;
    bool dma_buf;
};
constexpr std::array ways{Way{"DMA-BUF", Allocation::plain, true},
                          Way{"DMA-BUF of virtual memory", Allocation::vmm, true},
                          Way{"nvidia-peermem", Allocation::plain, false}};

// What one device reported.
struct Asked {
    std::string text;
    bool software = false;
    bool registers = false;
    std::optional<TestResult> leak;  // of the first way that has one
    std::optional<Error> refusal;    // of the first way that has one
};

Result<void> take(GpuBench const& bench, ibv_pd* pd, Way const& way, std::uint64_t bytes) {
    VFMGR_TRY(auto const memory, GpuMemory::allocate(bench.context, way.how, bytes));
    GpuRange const range{memory.range().address, bytes};
    VFMGR_CHECK(way.dma_buf ? register_dma_buf(pd, bench.context, range, nic_access)
                            : register_peermem(pd, range, nic_access));
    return {};
}

Result<void> take_all(GpuBench const& bench, ibv_pd* pd, Way const& way) {
    for (auto const bytes : registered_sizes) VFMGR_CHECK(take(bench, pd, way, bytes));
    return {};
}

TestResult take_in_rounds(GpuBench const& bench, ibv_pd* pd, Way const& way) {
    return in_rounds(bench, "allocating, registering and freeing",
                     [&] { return take(bench, pd, way, round_bytes); });
}

void ask(GpuBench const& bench, ibv_pd* pd, Asked& asked) {
    std::string taken, refused;
    for (auto const& way : ways) {
        // Skips a way that would be refused for the same reason.
        if (way.how == Allocation::vmm && (bench.gpu.vmm.value_or(0) == 0 || taken.empty()))
            continue;
        auto const done = take_all(bench, pd, way);
        if (!done) {
            refused += fmt::format(", not by {}: {}", way.text, detail_with_causes(done.error()));
            if (!asked.refusal) asked.refusal = done.error();
            continue;
        }
        asked.registers = true;
        taken += fmt::format("{}by {}", taken.empty() ? "" : ", ", way.text);
        auto const rounds = take_in_rounds(bench, pd, way);
        if (rounds.verdict != Verdict::pass && !asked.leak) asked.leak = rounds;
    }
    asked.text += taken + (taken.empty() ? refused.substr(2) : refused);
}

Asked ask(GpuBench const& bench, ibv_device* device) {
    Asked asked;
    asked.text = fmt::format("{}: ", device->name);
    verify::VerbsContext const context(ibv_open_device(device));
    verify::VerbsPd const pd(context ? ibv_alloc_pd(context.get()) : nullptr);
    ibv_device_attr limits{};
    if (!pd || ibv_query_device(context.get(), &limits) != 0) {
        asked.refusal = Error{
            Problem::kernel_refused, fmt::format("it can't be opened: {}", std::strerror(errno)),
            "run it as root, or lift the limit of locked memory: ulimit -l unlimited"};
        asked.text += asked.refusal->detail;
        return asked;
    }
    asked.software = verify::is_software(limits);
    ask(bench, pd.get(), asked);
    return asked;
}

TestResult conclude(GpuBench const& bench, std::vector<Asked> const& all) {
    bool registers = false, hardware = false;
    std::string text;
    for (auto const& asked : all) {
        if (asked.leak) {
            auto leak = *asked.leak;
            leak.detail = asked.text + ": " + leak.detail;
            return leak;
        }
        registers = registers || asked.registers;
        hardware = hardware || !asked.software;
        text += (text.empty() ? "" : "; ") + asked.text;
    }
    if (registers) {
        auto result = passed(fmt::format("{}; {} to {}, {} rounds left nothing behind", text,
                                         bytes_text(registered_sizes.front()),
                                         bytes_text(registered_sizes.back()), bench.rounds));
        result.figures = {{"rounds", static_cast<double>(bench.rounds)}};
        return result;
    }
    if (!hardware)
        return not_passed(Verdict::skip,
                          {Problem::unsupported, "software RDMA devices can't reach a GPU; " + text,
                           "run it on a machine with the NIC or its VF"});
    return failed(text, all.front().refusal ? all.front().refusal->remedy : "");
}

}  // namespace

TestResult test_registration(GpuBench const& bench) {
    int count = 0;
    verify::VerbsDevices const devices(ibv_get_device_list(&count));
    if (!devices || count == 0)
        return not_passed(Verdict::skip,
                          {Problem::not_found, "no NIC was tested: this machine has no RDMA device",
                           "run it on a machine with the NIC or its VF, with its driver loaded"});
    std::vector<Asked> all;
    for (int n = 0; n < count; ++n) all.push_back(ask(bench, devices.get()[n]));
    return conclude(bench, all);
}

}  // namespace vfmgr::guest::gpu
