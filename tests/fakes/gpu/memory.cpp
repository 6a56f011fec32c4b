// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/fakes/gpu/standin.hpp"

namespace vfmgr::standin {

Physical::Physical(std::size_t size, int of_gpu)
    : descriptor(::memfd_create(of_gpu == 0 ? "standin-gpu0" : "standin-gpu1",
                                MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      bytes(size),
      gpu(of_gpu) {
    if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0) bytes = 0;
    ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK);  // udmabuf requires it
    state().contexts[static_cast<std::size_t>(gpu)].used += bytes;
}

Physical::~Physical() {
    state().contexts[static_cast<std::size_t>(gpu)].used -= bytes;
    ::close(descriptor);
}

Region const* region_of(std::uintptr_t address, std::size_t bytes) {
    auto const& regions = state().regions;
    auto after = regions.upper_bound(address);
    if (after == regions.begin()) return nullptr;
    auto const& [begin, region] = *--after;
    bool const inside =
        address - begin <= region.bytes && bytes <= region.bytes - (address - begin);
    return inside && region.physical && region.accessible ? &region : nullptr;
}

std::uintptr_t begin_of(Region const* region) {
    for (auto const& [begin, each] : state().regions)
        if (&each == region) return begin;
    return 0;
}

}  // namespace vfmgr::standin

namespace {

using namespace vfmgr::standin;

constexpr std::size_t granularity_bytes = std::size_t{2} << 20U;
constexpr int shared = MAP_SHARED | MAP_NORESERVE;
constexpr std::size_t total_bytes = std::size_t{143771} << 20U;

void* map(Physical const& physical, void* where, int how) {
    auto* const mapped =
        ::mmap(where, physical.bytes, PROT_READ | PROT_WRITE, how, physical.descriptor, 0);
    return mapped == MAP_FAILED ? nullptr : mapped;
}

int allocate(unsigned long long* address, std::size_t bytes, Kind kind) {
    if (bytes == 0) return invalid_value;
    auto const* const current = state().current;
    if (!current || current->retained == 0) return invalid_context;
    if (bytes > total_bytes - current->used) return out_of_memory;
    auto physical = std::make_shared<Physical>(bytes, current->gpu);
    auto* const mapped = map(*physical, nullptr, shared);
    if (!mapped) return out_of_memory;
    *address = reinterpret_cast<std::uintptr_t>(mapped);
    state().regions[*address] = {kind, bytes, std::move(physical), true};
    return success;
}

void* pointer(unsigned long long address) {
    return reinterpret_cast<void*>(address);
}

}  // namespace

extern "C" {

int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
    return allocate(address, bytes, Kind::plain);
}

int cuMemAllocManaged(unsigned long long* address, std::size_t bytes, unsigned) {
    return allocate(address, bytes, Kind::managed);
}

int cuMemFree_v2(unsigned long long address) {
    auto const found = state().regions.find(address);
    if (found == state().regions.end() || found->second.kind == Kind::reserved)
        return invalid_value;
    ::munmap(pointer(address), found->second.bytes);
    state().regions.erase(found);
    return success;
}

int cuMemsetD8_v2(unsigned long long address, unsigned char value, std::size_t bytes) {
    if (!region_of(address, bytes)) return invalid_value;
    std::memset(pointer(address), value, bytes);
    return success;
}

int cuMemcpyHtoD_v2(unsigned long long address, void const* from, std::size_t bytes) {
    auto const* const region = region_of(address, bytes);
    if (!region) return invalid_value;
    state().copied.insert(begin_of(region));
    std::memcpy(pointer(address), from, bytes);
    return success;
}

int cuMemcpyDtoH_v2(void* out, unsigned long long address, std::size_t bytes) {
    if (!region_of(address, bytes)) return invalid_value;
    std::memcpy(out, pointer(address), bytes);
    return success;
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void*) {
    if (!region_of(to, bytes) || !region_of(from, bytes)) return invalid_value;
    std::memmove(pointer(to), pointer(from), bytes);
    return success;
}

int cuPointerSetAttribute(void const* value, int attribute, unsigned long long address) {
    constexpr int sync_memops = 6;
    auto const* const region = region_of(address, 1);
    if (!region || attribute != sync_memops || !value) return invalid_value;
    return region->kind == Kind::reserved ? not_supported : success;
}

int cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
    constexpr int is_managed = 8;
    auto const* const region = region_of(address, 1);
    if (!region || attribute != is_managed) return invalid_value;
    *static_cast<unsigned*>(value) = region->kind == Kind::managed ? 1 : 0;
    return success;
}

int cuMemGetAllocationGranularity(std::size_t* bytes, void const*, int) {
    *bytes = granularity_bytes;
    return success;
}

int cuMemCreate(unsigned long long* handle, std::size_t bytes, void const* properties,
                unsigned long long) {
    int gpu = no_gpu;
    std::memcpy(&gpu, static_cast<char const*>(properties) + 12, sizeof gpu);  // location.id
    if (bytes == 0 || bytes % granularity_bytes != 0 || gpu < 0 || gpu >= gpus_max)
        return invalid_value;
    if (bytes > total_bytes - state().contexts[static_cast<std::size_t>(gpu)].used)
        return out_of_memory;
    *handle = state().next_handle++;
    state().handles[*handle] = std::make_shared<Physical>(bytes, gpu);
    return success;
}

int cuMemRelease(unsigned long long handle) {
    return state().handles.erase(handle) == 1 ? success : invalid_value;
}

int cuMemAddressReserve(unsigned long long* address, std::size_t bytes, std::size_t,
                        unsigned long long, unsigned long long) {
    auto* const where =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (where == MAP_FAILED) return out_of_memory;
    *address = reinterpret_cast<std::uintptr_t>(where);
    state().regions[*address] = {Kind::reserved, bytes, nullptr, false};
    return success;
}

int cuMemMap(unsigned long long address, std::size_t bytes, std::size_t offset,
             unsigned long long handle, unsigned long long) {
    auto const found = state().regions.find(address);
    auto const physical = state().handles.find(handle);
    if (found == state().regions.end() || physical == state().handles.end() || offset != 0 ||
        bytes != physical->second->bytes || bytes > found->second.bytes)
        return invalid_value;
    if (!map(*physical->second, pointer(address), shared | MAP_FIXED)) return out_of_memory;
    found->second.physical = physical->second;
    return success;
}

int cuMemSetAccess(unsigned long long address, std::size_t, void const*, std::size_t) {
    auto const found = state().regions.find(address);
    if (found == state().regions.end() || !found->second.physical) return invalid_value;
    found->second.accessible = true;
    return success;
}

int cuMemUnmap(unsigned long long address, std::size_t bytes) {
    auto const found = state().regions.find(address);
    if (found == state().regions.end() || !found->second.physical) return invalid_value;
    ::mmap(pointer(address), bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    found->second.physical.reset();
    return success;
}

int cuMemAddressFree(unsigned long long address, std::size_t bytes) {
    auto const found = state().regions.find(address);
    if (found == state().regions.end() || found->second.physical) return invalid_value;
    ::munmap(pointer(address), bytes);
    state().regions.erase(found);
    return success;
}

}  // extern "C"
