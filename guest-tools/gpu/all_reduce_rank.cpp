// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/all_reduce_rank.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"
#include "vfmgr/proof/host/judge.hpp"
#include "vfmgr/proof/interop/child.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::guest::gpu {
namespace {

constexpr std::size_t block_elements = std::size_t{1} << 20U;  // on the host at a time

std::string wrong_sum_text(float found, std::uint32_t expected) {
    constexpr auto poison = std::to_integer<std::uint32_t>(verify::poison_byte) * 0x01010101U;
    if (std::bit_cast<std::uint32_t>(found) == poison) return "was never written";
    return fmt::format("is {} instead of {}", found, expected);
}

// Finds the rank whose values are missing: one faulty GPU explains more than a number.
std::optional<std::uint32_t> lacking(AllReduceValues const& values, std::size_t element,
                                     float found) {
    auto const sum = values.sum(element);
    for (std::uint32_t rank = 0; rank < values.ranks; ++rank)
        if (static_cast<float>(sum - values.of(rank, element)) == found) return rank;
    return std::nullopt;
}

}  // namespace

Error of_gpu(PciAddress const& pci, Error error) {
    error.detail = fmt::format("GPU {}: {}", to_string(pci), error.detail);
    return error;
}

Result<std::unique_ptr<AllReduceRank>> AllReduceRank::open(Cuda const& cuda, CudaGpu const& gpu) {
    auto context = GpuContext::open(cuda, gpu.device);
    if (!context) return fail(of_gpu(gpu.pci, context.error()));
    std::unique_ptr<AllReduceRank> rank(new AllReduceRank(std::move(*context), gpu.pci));
    auto const made =
        cuda.done("cuStreamCreate", cuda.calls.cuStreamCreate(&rank->stream_, stream_non_blocking));
    if (!made) return fail(of_gpu(gpu.pci, made.error()));
    return rank;
}

AllReduceRank::~AllReduceRank() {
    static_cast<void>(context_.use());
    if (stream_) context_.cuda().calls.cuStreamDestroy_v2(stream_);
}

Result<void> AllReduceRank::allocate(std::size_t bytes) {
    VFMGR_CHECK(context_.use());
    for (auto* const memory : {&sent_, &received_}) {
        auto made = GpuMemory::allocate(context_, Allocation::plain, bytes);
        if (!made) return fail(of_gpu(pci_, made.error()));
        memory->emplace(std::move(*made));
    }
    return {};
}

Result<void> AllReduceRank::fill(AllReduceValues const& values, std::uint32_t rank,
                                 std::size_t bytes) const {
    VFMGR_CHECK(context_.use());
    VFMGR_CHECK(received_->set(verify::poison_byte, bytes));
    auto const elements = bytes / sizeof(float);
    std::vector<float> block(std::min(block_elements, elements));
    for (std::size_t begin = 0; begin < elements; begin += block.size()) {
        block.resize(std::min(block.size(), elements - begin));
        for (std::size_t at = 0; at < block.size(); ++at)
            block[at] = static_cast<float>(values.of(rank, begin + at));
        VFMGR_CHECK(sent_->write(begin * sizeof(float), std::as_bytes(std::span(block))));
    }
    // The non-blocking stream does not wait for these copies either.
    return context_.synchronize();
}

Result<WrongSums> AllReduceRank::check(AllReduceValues const& values, GpuMemory const& memory,
                                       std::size_t bytes) const {
    VFMGR_CHECK(context_.use());
    WrongSums found;
    auto const elements = bytes / sizeof(float);
    std::vector<float> block(std::min(block_elements, elements));
    for (std::size_t begin = 0; begin < elements; begin += block.size()) {
        block.resize(std::min(block.size(), elements - begin));
        VFMGR_CHECK(memory.read(begin * sizeof(float), std::as_writable_bytes(std::span(block))));
        for (std::size_t at = 0; at < block.size(); ++at) {
            auto const expected = values.sum(begin + at);
            if (block[at] == static_cast<float>(expected)) continue;
            if (found.wrong++ > 0) continue;
            found.first = begin + at;
            found.what = wrong_sum_text(block[at], expected);
            found.lacks = lacking(values, found.first, block[at]);
        }
    }
    return found;
}

namespace {

constexpr std::size_t all_reduce_sentence_max = 1500;  // each of two in one message

TestResult one_gpu() {
    std::string detail = "an all-reduce needs two GPUs, but CUDA lists one";
    if (char const* const visible = std::getenv("CUDA_VISIBLE_DEVICES"))
        detail += fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", visible);
    return not_passed(Verdict::not_applicable, {Problem::unsupported, std::move(detail), ""});
}

TestResult hangs(std::string const& step, std::chrono::seconds limit) {
    return failed(
        fmt::format("it hangs: {} did not finish within {} s", step, limit.count()),
        "run NCCL_DEBUG=INFO vf-guest gpu test to find out where. If NCCL_P2P_DISABLE=1 vf-guest "
        "gpu test passes, the direct path between the GPUs is at fault: ACS or an IOMMU redirects "
        "it (vf-guest doctor), or NVLink (nvidia-smi nvlink -s; dmesg | grep NVRM). If it hangs at "
        "the communicators, name a network device that works: NCCL_SOCKET_IFNAME=lo");
}

// Truncates the sentences to fit one message: the end of a longer one would not be read.
void report_result(TestResult result) {
    result.detail = verify::printable(result.detail, all_reduce_sentence_max);
    result.remedy = verify::printable(result.remedy, all_reduce_sentence_max);
    interop::report_to_parent(to_json_text(nlohmann::json(result)));
    // Frees nothing: that may block forever, and the end of the process frees it anyway.
    std::_Exit(0);
}

}  // namespace

TestResult test_all_reduce(Cuda const& cuda, AllReduceOrder const& order) {
    int gpus = 0;
    auto const counted = cuda.done("cuDeviceGetCount", cuda.calls.cuDeviceGetCount(&gpus));
    if (!counted) return not_passed(Verdict::fail, counted.error());
    if (gpus < 2) return one_gpu();
    auto program = order.program;
    program.push_back(std::to_string(order.options.bytes_max));
    program.push_back(order.options.library);
    auto const child = interop::Child::start(std::move(program), "the all-reduce process");
    if (!child) return not_passed(Verdict::fail, child.error());
    std::string step = "starting";
    while (true) {
        auto const until = std::chrono::steady_clock::now() + order.step_max;
        auto message = (*child)->receive(until);
        if (!message && std::chrono::steady_clock::now() >= until)
            return hangs(step, order.step_max);
        if (!message)
            return failed(
                fmt::format("the all-reduce process ended with {} during: {}",
                            (*child)->how_ended(), step),
                "run NCCL_DEBUG=INFO vf-guest gpu test to find out what NCCL did before; leave "
                "NCCL's plugins out with NCCL_NET_PLUGIN=none NCCL_TUNER_PLUGIN=none");
        if (!message->starts_with('{')) {
            step = std::move(*message);
            continue;
        }
        auto result = from_json_text<TestResult>(*message);
        return result ? std::move(*result) : not_passed(Verdict::fail, result.error());
    }
}

int run_all_reduce(std::vector<std::string> const& words) {
    auto const bytes = words.size() == 2 ? parse_digits(words[0], {10, 1, 12}) : std::nullopt;
    if (!bytes) return 2;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Keeps NCCL's output out of standard output, where it would land inside a document.
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    // Calls that return unfinished are for programs that have other work to do.
    ::setenv("NCCL_COMM_BLOCKING", "1", 1);
    interop::report_to_parent(std::string("asking ") + cuda_library);
    auto const cuda = Cuda::open();
    if (!cuda) report_result(not_passed(Verdict::fail, cuda.error()));
    auto const gpus = list_gpus(**cuda);
    if (!gpus) report_result(not_passed(Verdict::fail, gpus.error()));
    all_reduce(**cuda, *gpus, {*bytes, words[1]},
               {[](std::string const& step) { interop::report_to_parent(step); }, report_result});
    return 0;
}

}  // namespace vfmgr::guest::gpu
