// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/fakes/gpu/standin.hpp"

namespace {

using namespace vfmgr::standin;

constexpr std::size_t memory_bytes = std::size_t{143771} << 20U;

int answer(int attribute, std::string const& personality) {
    bool const geforce = personality.starts_with("geforce");
    bool const dma_buf = !geforce && personality != "peermem";
    std::map<int, int> const attributes{{16, 132},
                                        {75, geforce ? 8 : 9},
                                        {76, geforce ? 6 : 0},
                                        {83, 1},
                                        {102, 1},
                                        {110, 1},
                                        {116, geforce ? 0 : 1},
                                        {117, personality == "no-flush" ? 0 : 1},
                                        {118, geforce || personality == "unordered" ? 0 : 100},
                                        {124, dma_buf ? 1 : 0}};
    auto const found = attributes.find(attribute);
    return found == attributes.end() ? 0 : found->second;
}

int gpus() {
    auto const& personality = state().personality;
    return personality == "none" ? 0 : personality.ends_with("two") ? 2 : 1;
}

bool is_gpu(int device) {
    return device >= 0 && device < gpus();
}

int put(char* out, int length, std::string const& text) {
    if (!out || length <= static_cast<int>(text.size())) return invalid_value;
    std::strcpy(out, text.c_str());
    return success;
}

struct Named {
    int result;
    char const* name;
    char const* text;
};
constexpr Named names[] = {
    {success, "CUDA_SUCCESS", "no error"},
    {invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {no_device, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {invalid_ptx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

Named const* named(int result) {
    auto const* const found =
        std::find_if(std::begin(names), std::end(names),
                     [result](Named const& one) { return one.result == result; });
    return found == std::end(names) ? nullptr : found;
}

}  // namespace

namespace vfmgr::standin {

State& state() {
    static State one;
    return one;
}

}  // namespace vfmgr::standin

extern "C" {

int cuInit(unsigned flags) {
    if (flags != 0) return invalid_value;
    char const* const expected = std::getenv("VFMGR_STANDIN_GPU");
    state().personality = expected && *expected ? expected : "h200";
    if (state().personality == "none") return no_device;
    state().started = true;
    state().packets = 0;
    return success;
}

int cuDriverGetVersion(int* version) {
    *version = newest_attribute > 116 ? 13000 : 10020;
    return success;
}

int cuGetErrorName(int result, char const** text) {
    auto const* const found = named(result);
    *text = found ? found->name : nullptr;
    return found ? success : invalid_value;
}

int cuGetErrorString(int result, char const** text) {
    auto const* const found = named(result);
    *text = found ? found->text : nullptr;
    return found ? success : invalid_value;
}

int cuDeviceGetCount(int* count) {
    *count = gpus();
    return success;
}

int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return is_gpu(ordinal) ? success : invalid_device;
}

int cuDeviceGetName(char* name, int length, int) {
    return put(
        name, length,
        state().personality.starts_with("geforce") ? "NVIDIA GeForce RTX 3090" : "NVIDIA H200");
}

int cuDeviceGetPCIBusId(char* text, int length, int device) {
    return put(text, length, device == 0 ? "0000:1B:00.0" : "0000:43:00.0");
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
    *bytes = memory_bytes;
    return success;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    if (!is_gpu(device)) return invalid_device;
    if (attribute > newest_attribute) return invalid_value;
    *value = answer(attribute, state().personality);
    return success;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
    if (!is_gpu(device)) return invalid_device;
    auto& primary = state().contexts[static_cast<std::size_t>(device)];
    ++primary.retained;
    *context = &primary;
    return success;
}

int cuDevicePrimaryCtxRelease(int device) {
    if (!is_gpu(device)) return invalid_device;
    auto& primary = state().contexts[static_cast<std::size_t>(device)];
    if (primary.retained == 0) return invalid_value;
    --primary.retained;
    return success;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    return cuDevicePrimaryCtxRelease(device);
}

int cuCtxSetCurrent(void* context) {
    state().current = static_cast<Context*>(context);
    return success;
}

int cuCtxSynchronize() {
    return success;
}

int cuCtxGetFlags(unsigned* flags) {
    if (!state().current) return invalid_context;
    *flags = state().current->flags;
    return success;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    *total = memory_bytes;
    if (!state().current) return invalid_context;
    *free = memory_bytes - state().current->used;
    return success;
}

}  // extern "C"
