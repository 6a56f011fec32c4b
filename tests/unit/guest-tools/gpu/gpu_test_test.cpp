// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "api/types/json.hpp"
#include "guest-tools/gpu/gpu_text.hpp"
#include "tests/unit/guest-tools/gpu/standin_gpu.hpp"
#include "tests/unit/repository.hpp"

namespace vfmgr::guest::gpu {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kibibytes_256 = 256 * 1024;

GpuTestReport report_of(std::string const& personality, char const* library = STANDIN_CUDA,
                        std::uint64_t bytes = kibibytes_256) {
    StandinGpu const standin(personality, library);
    checks::Facts const nothing;
    auto const info = join(standin.gpu, checks::read_machine(nothing));
    return test_gpu(*standin.cuda, standin.gpu, info, {.bytes = bytes, .rounds = 50}, {});
}

TestResult const& named(GpuTestReport const& report, std::string const& name) {
    for (auto const& test : report.tests)
        if (test.name == name) return test;
    throw std::runtime_error("no test " + name);
}

// Scripts read the output of -o json.
template <class T>
void expect_golden(std::string const& name) {
    std::ifstream file(test::repository() / ("tests/fixtures/gpu/" + name + ".json"));
    auto const document = nlohmann::json::parse(file, nullptr, false);
    auto const value = from_json_document<T>(document);
    ASSERT_TRUE(value) << name << ": " << value.error().detail;
    EXPECT_EQ(nlohmann::json(*value), document) << name;
}

TEST(GpuJson, IsReadAsItIsWritten) {
    expect_golden<GpuInfo>("gpu_info");
    expect_golden<GpuInfo>("gpu_info-not_offered");
    expect_golden<GpuTestReport>("gpu_test_report");
}

TEST(GpuTest, PassesOnAGoodGpu) {
    auto const report = report_of("h200");
    EXPECT_EQ(report.verdict, Verdict::pass) << describe(report);
    std::map<std::string, Verdict> const others{{"registration", Verdict::skip},
                                                {"all_reduce", Verdict::not_applicable}};
    for (auto const& test : report.tests) {
        auto const other = others.find(test.name);
        EXPECT_EQ(test.verdict, other == others.end() ? Verdict::pass : other->second)
            << test.name << ": " << test.detail;
    }
    EXPECT_THAT(named(report, "all_reduce").detail, HasSubstr("CUDA lists one"));
    for (auto const* name : {"export_plain", "export_vmm"}) {
        EXPECT_EQ(named(report, name).figures.at("smallest_bytes"), 4096);
        EXPECT_EQ(named(report, name).figures.at("largest_bytes"),
                  double(std::uint64_t{16} << 30U));
    }
    EXPECT_EQ(named(report, "payload_vmm").bytes_checked, kibibytes_256);
    for (auto const* name : {"check_percent_of_copy", "check_percent_of_read", "read_gb_per_s"})
        EXPECT_GT(named(report, "rate").figures.at(name), 0) << name;
    EXPECT_THAT(describe(report), AllOf(HasSubstr("4 KiB to 16 GiB"), HasSubstr("no RDMA device"),
                                        HasSubstr("16 flipped bits")));
}

TEST(GpuTest, TakesAnySizeFromAPageOn) {
    EXPECT_EQ(report_of("h200", STANDIN_CUDA, 1).verdict, Verdict::pass);
    auto const report = report_of("h200", STANDIN_CUDA, 10'007);
    EXPECT_EQ(named(report, "payload_plain").bytes_checked, 9984U) << "whole chunks";
}

TEST(GpuTest, IsNotApplicableToAGeForce) {
    auto const report = report_of("geforce");
    EXPECT_EQ(report.verdict, Verdict::not_applicable);
    EXPECT_THAT(report.tests, Not(IsEmpty()));
    EXPECT_THAT(report.tests, Each(Field(&TestResult::verdict, Verdict::not_applicable)));
    EXPECT_THAT(describe(report), HasSubstr("not a fault of the set-up"));
}

TEST(GpuTest, DoesWhatAnOldDriverCan) {
    auto const report = report_of("h200", STANDIN_CUDA_OLD);
    EXPECT_EQ(report.verdict, Verdict::pass) << describe(report);
    EXPECT_EQ(named(report, "export_plain").verdict, Verdict::not_applicable);
    EXPECT_EQ(named(report, "flush").verdict, Verdict::skip);
    EXPECT_THAT(named(report, "sync_memops").remedy, HasSubstr("12.1"));
    EXPECT_EQ(named(report, "payload_plain").verdict, Verdict::pass);
}

// Attributes are necessary, but not sufficient.
TEST(GpuTest, FailsWhereTheDriverOnlySaysThatItExports) {
    auto const report = report_of("refused");
    EXPECT_EQ(report.verdict, Verdict::fail);
    auto const& test = named(report, "export_plain");
    EXPECT_EQ(test.verdict, Verdict::fail);
    EXPECT_THAT(test.detail, AllOf(HasSubstr("4 KiB: "), HasSubstr("CUDA_ERROR_NOT_SUPPORTED")));
    EXPECT_THAT(test.remedy, HasSubstr("vf-guest peermem --explain"));
    EXPECT_EQ(named(report, "payload_plain").verdict, Verdict::pass);
}

TEST(GpuTest, ExportsNothingWherePeermemIsTheOnlyWay) {
    auto const report = report_of("peermem");
    EXPECT_EQ(report.verdict, Verdict::pass) << describe(report);
    EXPECT_EQ(named(report, "export_plain").verdict, Verdict::not_applicable);
    EXPECT_EQ(named(report, "damage").verdict, Verdict::pass);
}

TEST(GpuTest, FindsDescriptorsThatAreLeftOpen) {
    auto const report = report_of("leaky");
    EXPECT_EQ(report.verdict, Verdict::fail);
    for (auto const* name : {"export_plain", "export_rounds"})
        EXPECT_THAT(named(report, name).detail, HasSubstr("descriptors were open before"));
}

TEST(GpuTest, FindsAndLocatesABitThatIsStuck) {
    auto const report = report_of("stuck-bit");
    EXPECT_EQ(report.verdict, Verdict::fail);
    auto const chunk = kibibytes_256 / 64 - 22;
    auto const where = fmt::format("chunk {} differs from byte {} on", chunk, chunk * 64 + 20);
    EXPECT_THAT(named(report, "payload_plain").detail, HasSubstr(where));
    EXPECT_THAT(named(report, "rate").detail, HasSubstr(where));
    EXPECT_THAT(named(report, "payload_plain").remedy, HasSubstr("nvidia-smi"));
}

TEST(GpuTest, TellsWhatTheDriversCompilerSaid) {
    auto const report = report_of("no-ptx");
    EXPECT_EQ(report.verdict, Verdict::fail);
    auto const& test = named(report, "payload_plain");
    EXPECT_THAT(test.detail, HasSubstr("could not compile"));
    EXPECT_THAT(test.detail, HasSubstr("Unsupported .version 6.4"));
    EXPECT_THAT(test.remedy, HasSubstr("newer NVIDIA driver"));
    EXPECT_EQ(named(report, "export_plain").verdict, Verdict::pass) << "what came before stays";
}

}  // namespace
}  // namespace vfmgr::guest::gpu
