// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 for GPUs of the stand-in libcuda.so.1, for tests: it sums floats on the host, and
// delivers when the streams are queried. As NCCL does, it takes each GPU's memory and stream from
// that GPU alone, and an all-reduce that not all ranks take part in never ends. With NCCL_DEBUG it
// writes to standard output. VFMGR_STANDIN_NCCL selects its behaviour:
//   right (the default), wrong (rank 1 gets one wrong sum), lacking (rank 0 adds nothing), short
//   (the last sum of rank 1 is not delivered), refuses (communicators), hangs (making them), stuck
//   (the GPUs never finish), broken (the same, and the communicators report an error), crashes.
// With STANDIN_NCCL_OLD it is a version before 2.4.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fakes/gpu/standin.hpp"

struct ncclComm {
    int rank = 0;
    int gpu = 0;
    std::shared_ptr<std::vector<int>> gpus;  // shared by one clique
};

namespace {

using vfmgr::standin::Stream;
using Sums = std::vector<float>;

constexpr int ok = 0, unhandled_cuda = 1, system_error = 2, invalid_argument = 4, invalid_usage = 5,
              remote_error = 6;

struct Part {
    float const* sent = nullptr;
    float* received = nullptr;
    std::size_t count = 0;
    ncclComm const* comm = nullptr;
    Stream* stream = nullptr;
};
struct Delivery {
    std::shared_ptr<Sums const> sums;
    float* to = nullptr;
    std::size_t count = 0;
    bool one_is_wrong = false;
};

std::string last_word;
int groups = 0;
std::vector<Part> parts;

std::string_view personality() {
    char const* const expected = std::getenv("VFMGR_STANDIN_NCCL");
    return expected && *expected ? expected : "right";
}

int refuse(int result, std::string why) {
    last_word = std::move(why);
    return result;
}

// Which GPU's memory it is: the stand-in's memory is a memfd with that name.
int gpu_of(void const* address) {
    auto* const maps = std::fopen("/proc/self/maps", "re");
    if (!maps) std::abort();
    auto const expected = reinterpret_cast<std::uintptr_t>(address);
    int found = vfmgr::standin::no_gpu;
    for (char line[512]; std::fgets(line, sizeof line, maps);) {
        unsigned long begin = 0, end = 0;
        char const* const name = std::strstr(line, "standin-gpu");
        if (name && std::sscanf(line, "%lx-%lx", &begin, &end) == 2 && begin <= expected &&
            expected < end)
            found = name[std::strlen("standin-gpu")] - '0';
    }
    std::fclose(maps);
    return found;
}

void deliver(void* of) {
    std::unique_ptr<Delivery> const one(static_cast<Delivery*>(of));
    std::memcpy(one->to, one->sums->data(), one->count * sizeof(float));
    if (one->one_is_wrong) one->to[one->count / 2] += 1;
}

void finish(Stream& stream) {
    if (stream.work) std::exchange(stream.work, nullptr)(stream.of);
}

void put(Part const& part, std::shared_ptr<Sums const> sums) {
    auto delivery =
        std::make_unique<Delivery>(Delivery{std::move(sums), part.received, part.count});
    if (part.comm->rank == 1) {
        delivery->one_is_wrong = personality() == "wrong";
        if (personality() == "short") --delivery->count;
    }
    auto& stream = *part.stream;
    stream.of = delivery.release();
    stream.work = deliver;
    stream.questions = 2;
}

void run(std::vector<Part> const& all) {
    bool const whole = all.size() == all.front().comm->gpus->size();
    bool const ends = whole && personality() != "stuck" && personality() != "broken";
    auto sums = std::make_shared<Sums>(all.front().count);
    // Work that a stream already has comes first.
    for (auto const& part : all) finish(*part.stream);
    for (auto const& part : all) {
        part.stream->stuck = !ends;
        if (personality() == "lacking" && part.comm->rank == 0) continue;
        for (std::size_t at = 0; at < sums->size(); ++at) (*sums)[at] += part.sent[at];
    }
    if (!ends) return;
    for (auto const& part : all) put(part, sums);
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
#ifdef STANDIN_NCCL_OLD
    *version = 2307;
#else
    *version = 22703;
#endif
    return ok;
}

char const* ncclGetErrorString(int result) {
    switch (result) {
        case unhandled_cuda:
            return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
        case system_error:
            return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
        case invalid_argument:
            return "invalid argument (run with NCCL_DEBUG=WARN for details)";
        case remote_error:
            return "remote process exited or there was a network error";
        default:
            return "unknown result code";
    }
}

int ncclCommInitAll(ncclComm** comms, int count, int const* devices) {
    if (std::getenv("NCCL_DEBUG")) {
        std::puts("standin:1:1 [0] NCCL INFO cudaDriverVersion 13000");
        std::fflush(stdout);
    }
    if (personality() == "hangs")
        while (true) ::pause();
    if (personality() == "refuses")
        return refuse(system_error,
                      "Error while creating shared memory segment /dev/shm/nccl-Nk3kYc (size "
                      "9637888)");
    auto const gpus = std::make_shared<std::vector<int>>(devices, devices + count);
    for (int rank = 0; rank < count; ++rank) {
        if (devices[rank] < 0 || devices[rank] >= vfmgr::standin::gpus_max)
            return refuse(invalid_argument, "Invalid device");
        comms[rank] = std::make_unique<ncclComm>(ncclComm{rank, devices[rank], gpus}).release();
    }
    return ok;
}

int ncclCommDestroy(ncclComm* comm) {
    std::unique_ptr<ncclComm> const owner(comm);
    return owner ? ok : invalid_argument;
}

#ifndef STANDIN_NCCL_OLD
char const* ncclGetLastError(ncclComm*) {
    return last_word.c_str();
}

int ncclCommAbort(ncclComm* comm) {
    return ncclCommDestroy(comm);
}

int ncclCommGetAsyncError(ncclComm*, int* result) {
    *result = personality() == "broken" ? remote_error : ok;
    return ok;
}
#endif

int ncclGroupStart() {
    ++groups;
    return ok;
}

int ncclGroupEnd() {
    if (groups == 0) return refuse(invalid_usage, "ncclGroupEnd: not in a group call.");
    if (--groups > 0) return ok;
    auto const all = std::exchange(parts, {});
    for (auto const& part : all)
        if (part.count != all.front().count) return refuse(invalid_usage, "counts differ");
    if (!all.empty()) run(all);
    return ok;
}

int ncclAllReduce(void const* sent, void* received, std::size_t count, int type, int operation,
                  ncclComm* comm, void* of) {
    auto* const stream = static_cast<Stream*>(of);
    if (personality() == "crashes") std::abort();
    if (type != 7 || operation != 0) return refuse(invalid_argument, "only sums of floats here");
    if (!stream || stream->gpu != comm->gpu)
        return refuse(unhandled_cuda, "Cuda failure 400 'invalid resource handle'");
    if (gpu_of(sent) != comm->gpu || gpu_of(received) != comm->gpu)
        return refuse(unhandled_cuda, "Cuda failure 700 'an illegal memory access'");
    Part const part{static_cast<float const*>(sent), static_cast<float*>(received), count, comm,
                    stream};
    if (groups > 0)
        parts.push_back(part);
    else
        run({part});
    return ok;
}

}  // extern "C"
