// SPDX-License-Identifier: Apache-2.0
// What the kernel reports about a DMA-BUF descriptor and about what this process holds. No state;
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/os/descriptor.hpp"
#include "guest-tools/gpu/gpu_buffer.hpp"

namespace vfmgr::guest::gpu {

// Returns the exporter from /proc/self/fdinfo/N: "nv_dmabuf"; absent if it is not a DMA-BUF. At
// most 64 bytes, all printable.
[[nodiscard]] std::optional<std::string> parse_exporter(std::string_view fdinfo);
[[nodiscard]] std::optional<std::string> exporter_of(int descriptor);

// Counts this process's descriptors now.
[[nodiscard]] std::size_t open_descriptors();
// Returns how many bytes RDMA drivers and the like have pinned: VmPin of proc_pid_status(5).
// Excludes GPU memory.
[[nodiscard]] std::uint64_t pinned_bytes();
[[nodiscard]] std::uint64_t parse_pinned_bytes(std::string_view status);  // 0 if it is missing

// Exports GPU memory as a DMA-BUF descriptor, which a NIC's driver can register. The descriptor
// keeps the memory alive after it is freed, so its holder closes it after registering. Values; the
// thread of the context.

// A range in whole pages of the host, and the offset at which the requested range begins in it.
struct PageRange {
    GpuRange pages;
    std::size_t offset = 0;
};
[[nodiscard]] PageRange whole_pages(GpuRange requested, std::size_t page_bytes);
[[nodiscard]] std::size_t host_page_bytes();

struct DmaBufExport {
    FileDescriptor descriptor;
    PageRange range;
};
// Exports any range of one allocation. Refuses managed memory: it may move to the host at any time,
// and a measurement would then not be of the GPU.
[[nodiscard]] Result<DmaBufExport> export_dma_buf(GpuContext const& context, GpuRange requested);

}  // namespace vfmgr::guest::gpu
