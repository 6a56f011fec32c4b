// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "guest-tools/gpu/peermem_plan.hpp"
#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/checks/peermem.hpp"

namespace vfmgr::guest::gpu {
namespace {

WritesOrdering ordering_of(int value) {
    constexpr int all_devices = 200;
    if (value >= all_devices) return WritesOrdering::all_devices;
    return value >= writes_ordering_owner ? WritesOrdering::owner : WritesOrdering::none;
}

Result<CudaGpu> read_gpu(Cuda const& cuda, int ordinal) {
    auto const& calls = cuda.calls;
    CudaGpu gpu;
    std::array<char, 128> text{};
    constexpr int length = static_cast<int>(text.size());
    VFMGR_CHECK(cuda.run(calls.cuDeviceGet, &gpu.device, ordinal));
    VFMGR_CHECK(cuda.run(calls.cuDeviceGetPCIBusId, text.data(), length, gpu.device));
    VFMGR_TRY(gpu.pci, PciAddress::parse(text.data()));
    VFMGR_CHECK(cuda.run(calls.cuDeviceGetName, text.data(), length, gpu.device));
    gpu.name = text.data();
    std::size_t bytes = 0;
    VFMGR_CHECK(cuda.run(calls.cuDeviceTotalMem_v2, &bytes, gpu.device));
    gpu.memory_bytes = bytes;
    VFMGR_TRY(auto const major,
              cuda.attribute(CudaAttribute::compute_capability_major, gpu.device));
    VFMGR_TRY(auto const minor,
              cuda.attribute(CudaAttribute::compute_capability_minor, gpu.device));
    gpu.compute_capability = fmt::format("{}.{}", major, minor);
    gpu.cuda_version = cuda_version_text(cuda.version);
    // The driver rejects an attribute that it does not know yet as an invalid value.
    auto const maybe = [&](CudaAttribute attribute) -> std::optional<int> {
        int value = 0;
        auto const result = calls.cuDeviceGetAttribute(&value, attribute, gpu.device);
        return result == cuda_success ? std::optional(value) : std::nullopt;
    };
    auto const flag = [&](CudaAttribute attribute) {
        auto const value = maybe(attribute);
        return value ? std::optional(*value != 0) : std::nullopt;
    };
    gpu.gpu_direct_rdma = flag(CudaAttribute::gpu_direct_rdma_supported);
    gpu.dma_buf = flag(CudaAttribute::dma_buf_supported);
    gpu.vmm_gpu_direct_rdma = flag(CudaAttribute::gpu_direct_rdma_with_cuda_vmm_supported);
    if (auto const options = maybe(CudaAttribute::gpu_direct_rdma_flush_writes_options))
        gpu.flush_writes = (*options & flush_option_host) != 0;
    if (auto const ordering = maybe(CudaAttribute::gpu_direct_rdma_writes_ordering))
        gpu.writes_ordering = ordering_of(*ordering);
    gpu.vmm = flag(CudaAttribute::virtual_memory_management_supported).value_or(false);
    gpu.managed = flag(CudaAttribute::managed_memory).value_or(false);
    return gpu;
}

std::string attribute_text(std::optional<bool> value) {
    return value ? (*value ? "1" : "0") : "unknown to this driver";
}

std::string remedy_of(Finding const& finding) {
    if (!finding.remedy) return {};
    auto text = fmt::format("{}", fmt::join(finding.remedy->commands, "; "));
    if (finding.remedy->note.empty()) return text;
    return text.empty() ? finding.remedy->note : text + ": " + finding.remedy->note;
}

void judge_route(GpuInfo& info, checks::Machine const& machine, PeermemPlan const& plan) {
    auto const observed =
        fmt::format("GPU_DIRECT_RDMA_SUPPORTED is {}, DMA_BUF_SUPPORTED is {}",
                    attribute_text(info.gpu_direct_rdma), attribute_text(info.dma_buf));
    if (info.dma_buf.value_or(false)) {
        info.route = GpuRoute::dma_buf;
        info.detail = "the GPU offers DMA-BUF: " + observed;
    } else if (info.gpu_direct_rdma == false) {
        info.route = GpuRoute::not_offered;
        info.detail = fmt::format(
            "{} does not offer GPUDirect RDMA ({}). This is a limit of the product, as of every "
            "GeForce, not a fault of the set-up: RDMA goes through the host's memory",
            info.name, observed);
    } else if (plan.loaded) {
        info.route = GpuRoute::peermem;
        info.detail = fmt::format("nvidia-peermem is loaded: {}", observed);
        info.remedy = "prefer DMA-BUF where it can be used: " + checks::judge_dma_buf(machine).why;
    } else if (!info.gpu_direct_rdma) {
        info.route = GpuRoute::none;
        info.detail = fmt::format("NVIDIA's driver (CUDA {}) is too old to report it: {}",
                                  info.cuda_version, observed);
        info.remedy = "install a newer driver: 515 or newer, with its open kernel modules";
    } else {
        info.route = GpuRoute::none;
        info.detail = fmt::format("{}; {}", observed, plan.reason);
        info.remedy = plan.hindrances.empty()
                          ? "run vf-guest peermem, which loads what is needed; or, for DMA-BUF, "
                            "install NVIDIA's open kernel modules, 515 or newer"
                          : remedy_of(plan.hindrances.front());
    }
}

}  // namespace

Result<std::vector<CudaGpu>> list_gpus(Cuda const& cuda) {
    int count = 0;
    VFMGR_CHECK(cuda.run(cuda.calls.cuDeviceGetCount, &count));
    std::vector<CudaGpu> gpus;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        VFMGR_TRY(auto gpu, read_gpu(cuda, ordinal));
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

bool offers_gpudirect(GpuInfo const& gpu) {
    return gpu.gpu_direct_rdma.value_or(true) || gpu.dma_buf.value_or(false);
}

bool needs_flush(GpuInfo const& gpu) {
    return gpu.writes_ordering.value_or(WritesOrdering::none) == WritesOrdering::none;
}

bool offers_flush(Cuda const& cuda, GpuInfo const& gpu) {
    return gpu.flush_writes.value_or(false) && cuda.calls.cuFlushGPUDirectRDMAWrites;
}

Result<void> flush_writes(Cuda const& cuda) {
    constexpr int current_context = 0;
    return cuda.run(cuda.calls.cuFlushGPUDirectRDMAWrites, current_context, writes_ordering_owner);
}

GpuInfo join(GpuInfo info, checks::Machine const& machine) {
    if (auto const driver = checks::nvidia_driver(machine)) {
        info.driver_version = driver->version;
        info.driver_flavour = driver->open ? DriverFlavour::open : DriverFlavour::proprietary;
    }
    if (auto const* const device = checks::find_pci(machine, info.pci)) {
        if (auto const bar1 = checks::bar1_of(machine, *device)) info.bar1_bytes = bar1->bytes();
        if (auto const* const nic = checks::nearest_nic(machine, *device)) {
            info.nearest_nic = nic->address;
            info.distance = checks::distance(machine, *device, *nic);
        }
    }
    auto const plan = peermem_plan(machine, {.despite_dma_buf = true});
    info.peermem_loaded = plan.loaded;
    info.peermem = plan.reason;
    for (auto const& hindrance : plan.hindrances) info.peermem += "; " + hindrance.detail;
    judge_route(info, machine, plan);
    return info;
}

void measure_from(checks::Machine const& machine, std::string_view netdev,
                  std::vector<GpuInfo>& gpus) {
    if (!machine.netdevs()) return;
    auto const found = std::ranges::find(*machine.netdevs(), netdev, &checks::MachineNetdev::name);
    if (found == machine.netdevs()->end() || !found->pci()) return;
    auto const* const nic = checks::find_pci(machine, *found->pci());
    if (nic == nullptr) return;
    for (auto& gpu : gpus)
        if (auto const* const device = checks::find_pci(machine, gpu.pci)) {
            gpu.nearest_nic = nic->address;
            gpu.distance = checks::distance(machine, *device, *nic);
        }
}

Result<std::size_t> choose_gpu(std::vector<GpuInfo> const& gpus, std::string const& address) {
    std::optional<PciAddress> expected;
    if (!address.empty()) {
        VFMGR_TRY(expected, PciAddress::parse(address));
    }
    std::string addresses;
    std::optional<std::size_t> best;
    auto const rank = [](GpuInfo const& gpu) {
        return std::pair(gpu.route != GpuRoute::not_offered,
                         gpu.distance.value_or(PciDistance::unknown));
    };
    for (std::size_t at = 0; at < gpus.size(); ++at) {
        if (expected && gpus[at].pci == *expected) return at;
        addresses += (addresses.empty() ? "" : ", ") + to_string(gpus[at].pci);
        if (!best || rank(gpus[at]) > rank(gpus[*best])) best = at;
    }
    if (!best)
        return fail(Problem::not_found, "CUDA has no GPU on this machine",
                    "run vf-guest doctor, which names what NVIDIA's driver lacks");
    if (!expected) return *best;
    return fail(Problem::not_found, fmt::format("CUDA has no GPU at {}", to_string(*expected)),
                "choose one of: " + addresses);
}

Result<FoundGpus> find_gpus(checks::Machine const& machine) {
    FoundGpus found;
    auto cuda = Cuda::open();
    if (!cuda) {
        // Without a GPU, a missing library is no fault.
        if (machine.pci() && checks::own_gpus(machine).empty())
            return fail(Problem::not_found, "there is no NVIDIA GPU that this machine uses itself",
                        "attach one to this VM; vf-guest rdma lists its NICs");
        return fail(std::move(cuda.error()));
    }
    found.cuda = std::move(*cuda);
    VFMGR_TRY(found.gpus, list_gpus(*found.cuda));
    for (auto const& one : found.gpus) found.infos.push_back(join(one, machine));
    return found;
}

}  // namespace vfmgr::guest::gpu
