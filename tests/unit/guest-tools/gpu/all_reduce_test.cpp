// SPDX-License-Identifier: Apache-2.0
// The all-reduce over two stand-in GPUs, in this process and, as in production, in one of its own.
#include "guest-tools/gpu/all_reduce.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cmath>

#include "api/types/json.hpp"
#include "guest-tools/gpu/gpu_buffer.hpp"
#include "tests/unit/guest-tools/gpu/standin_gpu.hpp"

namespace vfmgr::guest::gpu {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto first_gpu = "0000:1b:00.0", second_gpu = "0000:43:00.0";

void set_nccl(std::string const& personality) {
    ::setenv("VFMGR_STANDIN_NCCL", personality.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", STANDIN_FOLDER, 1);
    ::unsetenv("CUDA_VISIBLE_DEVICES");
}

class AllReduceHere : public testing::Test {
  protected:
    TestResult run(std::string const& personality, std::string const& library = STANDIN_NCCL) {
        set_nccl(personality);
        std::vector<TestResult> results;
        all_reduce(*standin_.cuda, gpus_, mebibyte,
                   {[this](std::string const& step) { steps_.push_back(step); },
                    [&](TestResult const& result) { results.push_back(result); }},
                   library);
        EXPECT_EQ(results.size(), 1U);
        return results.empty() ? TestResult{} : results.front();
    }
    std::size_t free_of(std::size_t gpu) {
        return GpuContext::open(*standin_.cuda, gpus_[gpu].device)->free_bytes().value();
    }

    StandinGpu const standin_{"two"};
    std::vector<CudaGpu> const gpus_ = list_gpus(*standin_.cuda).value();
    std::vector<std::string> steps_;
};

TEST(AllReduceValues, HaveSumsThatAFloatHolds) {
    for (std::uint32_t const ranks : {2U, 3U, 8U, 16U, 72U}) {
        AllReduceValues const values{12345, ranks};
        std::uint32_t largest = 0;
        for (std::size_t at = 0; at < 100'000; ++at) {
            largest = std::max(largest, values.sum(at));
            float sum = 0;
            for (std::uint32_t rank = ranks; rank-- > 0;)
                sum += static_cast<float>(values.of(rank, at));
            ASSERT_EQ(sum, static_cast<float>(values.sum(at))) << ranks << " ranks, " << at;
        }
        EXPECT_LT(largest, 1U << 24U);
        EXPECT_GT(largest, 1U << 22U) << "the bits are used";
    }
}

TEST(AllReduceValues, DifferByRunRankAndPlace) {
    AllReduceValues const values{1, 2}, later{2, 2};
    std::size_t same_rank = 0, same_place = 0, same_run = 0;
    for (std::size_t at = 0; at < 100'000; ++at) {
        same_rank += values.of(0, at) == values.of(1, at) ? 1 : 0;
        same_place += values.sum(at) == values.sum(at + 1) ? 1 : 0;
        same_run += values.sum(at) == later.sum(at) ? 1 : 0;
    }
    for (auto const same : {same_rank, same_place, same_run}) EXPECT_LT(same, 5U);
}

TEST_F(AllReduceHere, PassesWhereEverySumIsRight) {
    auto const before = free_of(0);
    auto result = run("right");
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_THAT(result.detail,
                AllOf(StartsWith("2 GPUs, NCCL 2.27.3: "), HasSubstr("4 bytes to 1 MiB")));
    EXPECT_EQ(result.remedy, "");
    EXPECT_EQ(result.figures.at("ranks"), 2);
    EXPECT_EQ(result.figures.at("bytes"), double(mebibyte));
    EXPECT_GT(result.figures.at("algbw_gb_per_s"), 0);
    // 2 (n - 1) / n of it, and n is 2.
    EXPECT_EQ(result.figures.at("busbw_gb_per_s"), result.figures.at("algbw_gb_per_s"));
    // Two ways for each size, and the measured one, on two GPUs.
    EXPECT_EQ(result.bytes_checked, 2 * (2 * (4 + 4096 + 262'148) + 3 * mebibyte));
    EXPECT_EQ(result.mismatches, 0U);
    EXPECT_EQ(free_of(0), before);
    EXPECT_EQ(free_of(1), before);
    EXPECT_THAT(steps_, Contains("setting up GPU 0000:43:00.0"));
    EXPECT_EQ(steps_.back(), "taking the communicators down");
}

TEST_F(AllReduceHere, FindsOneWrongSumAndSaysWhereItIs) {
    auto const result = run("wrong");
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_EQ(result.mismatches, 1U);
    EXPECT_THAT(result.detail,
                AllOf(HasSubstr("of 4 bytes by NCCL 2.27.3 over 2 GPUs, out of place: 1 of 1 sums"),
                      HasSubstr(std::string("on GPU ") + second_gpu + ": element 0 is "),
                      HasSubstr(" instead of ")));
    EXPECT_THAT(result.remedy, HasSubstr("NCCL_P2P_DISABLE=1"));
}

TEST_F(AllReduceHere, NamesTheGpuThatAddsNothing) {
    auto const result = run("lacking");
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail,
                HasSubstr(std::string("the sum without the values of GPU ") + first_gpu));
}

TEST_F(AllReduceHere, TellsWhatWasNeverWritten) {
    auto const result = run("short");
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr(": element 0 was never written"));
}

TEST_F(AllReduceHere, TellsWhatNcclRefusedInItsWords) {
    auto const result = run("refuses");
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, AllOf(HasSubstr("NCCL 2.27.3 refused ncclCommInitAll"),
                                     HasSubstr("unhandled system error"),
                                     HasSubstr("creating shared memory segment /dev/shm/nccl-")));
    EXPECT_THAT(result.remedy, AllOf(HasSubstr("NCCL_DEBUG=INFO"), HasSubstr("--shm-size")));
}

TEST_F(AllReduceHere, SeesAnErrorThatIsOnlyToldToWhoAsks) {
    auto const before = free_of(1);
    auto const result = run("broken");
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("remote process exited"));
    EXPECT_EQ(free_of(1), before);
}

TEST_F(AllReduceHere, IsSkippedWithoutTheLibrary) {
    auto const result = run("right", "libnccl-that-is-not-there.so.2");
    EXPECT_EQ(result.verdict, Verdict::skip);
    EXPECT_THAT(result.detail, AllOf(HasSubstr("libnccl-that-is-not-there.so.2 can't be opened"),
                                     HasSubstr("No such file")));
    EXPECT_THAT(result.remedy, AllOf(HasSubstr("libnccl2"), HasSubstr("LD_LIBRARY_PATH=")));
}

TEST_F(AllReduceHere, IsSkippedWithAnOldNccl) {
    auto const result = run("right", STANDIN_NCCL_OLD);
    EXPECT_EQ(result.verdict, Verdict::skip);
    EXPECT_THAT(result.detail, AllOf(HasSubstr("NCCL 2.3.7 "), HasSubstr("has no ncclCommAbort")));
    EXPECT_THAT(result.remedy, HasSubstr("2.4 or newer"));
}

TEST_F(AllReduceHere, TakesAnEighthOfWhatIsFree) {
    auto const context = GpuContext::open(*standin_.cuda, gpus_[1].device).value();
    auto const taken = GpuBuffer::allocate(context, Allocation::plain,
                                           context.free_bytes().value() - 2 * mebibyte);
    ASSERT_TRUE(taken) << taken.error().detail;
    auto const result = run("right");
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_EQ(result.figures.at("bytes"), 256 * 1024);
}

TEST(NcclVersion, CountsInTwoWays) {
    EXPECT_EQ(nccl_version_text(2307), "2.3.7");
    EXPECT_EQ(nccl_version_text(2804), "2.8.4");
    EXPECT_EQ(nccl_version_text(20906), "2.9.6");
    EXPECT_EQ(nccl_version_text(22703), "2.27.3");
}

// --- in a process of its own ---

constexpr std::chrono::seconds patience{60};

TestResult in_process(std::string const& personality, std::chrono::seconds step_max) {
    set_nccl(personality);
    StandinGpu const standin("two");
    auto const result = test_all_reduce(
        *standin.cuda,
        {.bytes_max = mebibyte, .program = {VF_GUEST, all_reduce_command}, .step_max = step_max});
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    return result;
}

TEST(AllReduceProcess, PassesOn) {
    auto const result = in_process("right", patience);
    EXPECT_EQ(result.verdict, Verdict::pass) << result.detail;
    EXPECT_EQ(result.figures.at("ranks"), 2);
}

TEST(AllReduceProcess, OfOneGpuIsNotApplicable) {
    set_nccl("right");
    ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    StandinGpu const standin;
    auto const result = test_all_reduce(*standin.cuda, {.program = {"/nothing/is/started"}});
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(result.verdict, Verdict::not_applicable);
    EXPECT_THAT(result.detail, HasSubstr("CUDA lists one (CUDA_VISIBLE_DEVICES is '0')"));
}

TEST(AllReduceProcess, ThatHangsIsEndedAndSaysWhere) {
    // Long enough for a busy machine to reach the point where it hangs.
    constexpr std::chrono::seconds enough{5};
    auto const making = in_process("hangs", enough);
    EXPECT_EQ(making.verdict, Verdict::fail);
    EXPECT_EQ(
        making.detail,
        "it hangs: creating communicators for 2 GPUs with NCCL 2.27.3 did not finish within 5 s");
    EXPECT_THAT(making.remedy, AllOf(HasSubstr("NCCL_DEBUG=INFO"), HasSubstr("NCCL_P2P_DISABLE=1"),
                                     HasSubstr("NCCL_SOCKET_IFNAME")));
    auto const summing = in_process("stuck", enough);
    EXPECT_EQ(summing.verdict, Verdict::fail);
    EXPECT_EQ(summing.detail,
              "it hangs: an all-reduce of 4 bytes over 2 GPUs with NCCL 2.27.3 did not finish "
              "within 5 s");
}

TEST(AllReduceProcess, ThatCrashesHasAVerdict) {
    auto const result = in_process("crashes", patience);
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_EQ(result.detail,
              "the all-reduce process ended with signal 6 during: an all-reduce of 4 bytes over 2 "
              "GPUs with NCCL 2.27.3");
    EXPECT_THAT(result.remedy, HasSubstr("NCCL_NET_PLUGIN=none"));
}

TEST(AllReduceProcess, ThatCantBeStartedHasAVerdict) {
    set_nccl("right");
    StandinGpu const standin("two");
    auto const result = test_all_reduce(*standin.cuda, {.program = {"/not/there"}});
    EXPECT_EQ(result.verdict, Verdict::fail);
    EXPECT_THAT(result.detail, HasSubstr("the all-reduce process can't be started"));
}

// --- the command ---

struct Answer {
    int status = -1;
    std::string out;  // standard output only
};

Answer gpu_test(std::string const& gpus, std::string const& nccl, std::string const& options) {
    set_nccl(nccl);
    ::setenv("VFMGR_STANDIN_GPU", gpus.c_str(), 1);
    // NCCL's output of this level must not end up in the document.
    ::setenv("NCCL_DEBUG", "INFO", 1);
    auto const command = std::string(VF_GUEST " gpu test --size 65536 --rounds 1 ") + options;
    auto* const pipe = ::popen(command.c_str(), "re");
    if (!pipe) return {};
    Answer answer;
    std::array<char, 4096> room{};
    while (auto const got = std::fread(room.data(), 1, room.size(), pipe))
        answer.out.append(room.data(), got);
    answer.status = WEXITSTATUS(::pclose(pipe));
    ::unsetenv("NCCL_DEBUG");
    return answer;
}

TEST(GpuTestCommand, TestsAllGpusTogetherAtItsEnd) {
    auto const answer = gpu_test("two", "right", "-o json --gpu 0000:43:00.0");
    EXPECT_EQ(answer.status, 0);
    auto const report = from_json_text<GpuTestReport>(answer.out);
    ASSERT_TRUE(report) << answer.out;
    EXPECT_EQ(to_string(report->gpu.pci), second_gpu);
    EXPECT_EQ(report->verdict, Verdict::pass);
    auto const& last = report->tests.back();
    EXPECT_EQ(last.name, "all_reduce");
    EXPECT_EQ(last.verdict, Verdict::pass) << last.detail;
    EXPECT_EQ(last.figures.at("bytes"), 65'536) << "--size bounds it, too";
}

TEST(GpuTestCommand, FailsByAWrongSum) {
    auto const answer = gpu_test("two", "wrong", "-o json");
    EXPECT_EQ(answer.status, 1);
    auto const report = from_json_text<GpuTestReport>(answer.out);
    ASSERT_TRUE(report) << answer.out;
    EXPECT_EQ(report->verdict, Verdict::fail);
    EXPECT_EQ(report->tests.back().mismatches, 1U);
}

// GeForces offer no GPUDirect RDMA, and NCCL uses them.
TEST(GpuTestCommand, OfGeforcesProvesNothingOfGpudirectAndTellsOfTheAllReduce) {
    auto const good = gpu_test("geforce-two", "right", "");
    EXPECT_EQ(good.status, 0);
    EXPECT_THAT(good.out, AllOf(HasSubstr("RTX 3090): not_applicable\n"),
                                HasSubstr("all_reduce     pass           2 GPUs, NCCL 2.27.3")));
    auto const bad = gpu_test("geforce-two", "wrong", "");
    EXPECT_EQ(bad.status, 1);
    EXPECT_THAT(bad.out, AllOf(HasSubstr("RTX 3090): fail\n"), HasSubstr("remedy: run NCCL_P2P")));
}

}  // namespace
}  // namespace vfmgr::guest::gpu
