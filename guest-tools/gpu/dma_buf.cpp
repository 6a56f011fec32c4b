// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/dma_buf.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "api/os/file.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::guest::gpu {

std::optional<std::string> parse_exporter(std::string_view fdinfo) {
    constexpr std::string_view key = "exp_name:";
    constexpr std::size_t bytes_max = 64;
    while (!fdinfo.empty()) {
        auto line = checks::take_line(fdinfo);
        if (!line.starts_with(key)) continue;
        line.remove_prefix(key.size());
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        bool const printable =
            std::ranges::all_of(line, [](char byte) { return byte > ' ' && byte < '\x7f'; });
        if (line.empty() || line.size() > bytes_max || !printable) return std::nullopt;
        return std::string(line);
    }
    return std::nullopt;
}

std::optional<std::string> exporter_of(int descriptor) {
    return parse_exporter(
        read_file("/proc/self/fdinfo/" + std::to_string(descriptor)).value_or(""));
}

std::size_t open_descriptors() {
    return paths_in("/proc/self/fd").size();
}

std::uint64_t parse_pinned_bytes(std::string_view status) {
    constexpr std::string_view key = "\nVmPin:";
    constexpr std::uint64_t kibibyte = 1024;
    auto const at = status.find(key);
    if (at == status.npos) return 0;
    status.remove_prefix(at + key.size());
    status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
    std::uint64_t count = 0;
    std::from_chars(status.data(), status.data() + status.size(), count);
    return count * kibibyte;
}

std::uint64_t pinned_bytes() {
    return parse_pinned_bytes(read_file("/proc/self/status").value_or(""));
}

namespace {

Error export_refused(Cuda const& cuda, PageRange const& range, CudaResult result) {
    auto error = cuda.refusal("cuMemGetHandleForAddressRange", result);
    error.detail =
        fmt::format("NVIDIA's driver returns no DMA-BUF for {} bytes", range.pages.bytes);
    if (result == cuda_not_supported)
        error.remedy =
            "install NVIDIA's open kernel modules, 515 or newer, and kernel 5.12 or newer; or use "
            "nvidia-peermem: vf-guest peermem --explain";
    return error;
}

Result<void> refuse_managed(Cuda const& cuda, GpuRange requested) {
    unsigned managed = 0;
    VFMGR_CHECK(cuda.done(
        "cuPointerGetAttribute(IS_MANAGED)",
        cuda.calls.cuPointerGetAttribute(&managed, pointer_is_managed, requested.address)));
    if (managed == 0) return {};
    return fail(Problem::invalid_request,
                "managed memory can't be exported: it may move to the host's memory at any time, "
                "and no NIC would reach the GPU's",
                "allocate with cuMemAlloc or cudaMalloc, not with cudaMallocManaged");
}

}  // namespace

std::size_t host_page_bytes() {
    auto const bytes = ::sysconf(_SC_PAGESIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 4096;
}

PageRange whole_pages(GpuRange requested, std::size_t page_bytes) {
    auto const offset = static_cast<std::size_t>(requested.address % page_bytes);
    auto const bytes = (offset + requested.bytes + page_bytes - 1) / page_bytes * page_bytes;
    return {{requested.address - offset, bytes}, offset};
}

Result<DmaBufExport> export_dma_buf(GpuContext const& context, GpuRange requested) {
    auto const& cuda = context.cuda();
    VFMGR_CHECK(refuse_managed(cuda, requested));
    auto const call = cuda.calls.cuMemGetHandleForAddressRange;
    if (!call)
        return fail(Problem::unsupported,
                    fmt::format("NVIDIA's driver (CUDA {}) has no DMA-BUF",
                                cuda_version_text(cuda.version)),
                    "install driver 515 or newer, with its open kernel modules");
    DmaBufExport made{{}, whole_pages(requested, host_page_bytes())};
    auto const& pages = made.range.pages;
    int descriptor = -1;
    auto const result = call(&descriptor, pages.address, pages.bytes, range_handle_dma_buf, 0);
    if (result != cuda_success) return fail(export_refused(cuda, made.range, result));
    made.descriptor = FileDescriptor(descriptor);
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0) return made;
    Error error{Problem::kernel_refused, "the DMA-BUF of NVIDIA's driver is not a descriptor",
                "report it, with the version of NVIDIA's driver"};
    error.causes.push_back(errno_cause("fcntl", errno));
    return fail(std::move(error));
}

}  // namespace vfmgr::guest::gpu
