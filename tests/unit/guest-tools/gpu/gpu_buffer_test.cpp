// SPDX-License-Identifier: Apache-2.0
// Memory, exports and the payload's kernels, on the stand-in.
#include "guest-tools/gpu/gpu_buffer.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <cstring>

#include "guest-tools/gpu/dma_buf.hpp"
#include "guest-tools/gpu/gpu_payload.hpp"
#include "tests/fakes/gpu/dma_buf.hpp"
#include "tests/unit/guest-tools/gpu/standin_gpu.hpp"

namespace vfmgr::guest::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using verify::Payload;

class GpuBufferOf : public testing::TestWithParam<Allocation> {
  protected:
    StandinGpu const standin_;
    GpuContext const context_ = GpuContext::open(*standin_.cuda, standin_.gpu.device).value();
    std::size_t const free_ = context_.free_bytes().value();
    std::size_t const descriptors_ = open_descriptors();
};
INSTANTIATE_TEST_SUITE_P(Both, GpuBufferOf, testing::Values(Allocation::plain, Allocation::vmm));

TEST_P(GpuBufferOf, ComesBack) {
    {
        auto const memory = GpuBuffer::allocate(context_, GetParam(), 100).value();
        EXPECT_GE(memory.range().bytes, 100U);
        EXPECT_LT(context_.free_bytes().value(), free_);
    }
    EXPECT_EQ(context_.free_bytes().value(), free_);
    EXPECT_EQ(open_descriptors(), descriptors_);
}

TEST_P(GpuBufferOf, ThatDoesNotFitIsRefusedAndLeavesNothing) {
    // The first size has addresses but no memory; the second has not even addresses.
    for (auto const bytes : {free_ + 2 * mebibyte, std::size_t{1} << 50U}) {
        auto const none = GpuBuffer::allocate(context_, GetParam(), bytes);
        ASSERT_FALSE(none) << bytes;
        EXPECT_EQ(none.error().problem, Problem::limit_exceeded);
        EXPECT_THAT(none.error().remedy, HasSubstr("--size"));
        EXPECT_EQ(context_.free_bytes().value(), free_);
        EXPECT_EQ(open_descriptors(), descriptors_);
    }
}

TEST_P(GpuBufferOf, IsExportedInWholePages) {
    auto const page = host_page_bytes();
    auto const memory = GpuBuffer::allocate(context_, GetParam(), mebibyte).value();
    auto const made =
        export_dma_buf(context_, {memory.range().address + page + 100, 2 * page}).value();
    EXPECT_EQ(made.range.pages.address, memory.range().address + page);
    EXPECT_EQ(made.range.pages.bytes, 3 * page);
    EXPECT_EQ(made.range.offset, 100U);
    EXPECT_EQ(::lseek(made.descriptor.get(), 0, SEEK_END), static_cast<off_t>(3 * page));
    EXPECT_NE(::fcntl(made.descriptor.get(), F_GETFD) & FD_CLOEXEC, 0);
    bool const by_kernel = ::access("/dev/udmabuf", R_OK | W_OK) == 0;
    EXPECT_EQ(exporter_of(made.descriptor.get()).value_or(""), by_kernel ? "udmabuf" : "");
}

TEST_P(GpuBufferOf, IsAsBeforeAfterTenThousandExports) {
    for (int round = 0; round < 10'000; ++round) {
        auto const memory = GpuBuffer::allocate(context_, GetParam(), 65'536).value();
        auto const made = export_dma_buf(context_, memory.range()).value();
        ASSERT_GE(made.descriptor.get(), 0);
    }
    EXPECT_EQ(context_.free_bytes().value(), free_);
    EXPECT_EQ(open_descriptors(), descriptors_);
}

TEST_P(GpuBufferOf, TellsDamageByItsPlace) {
    auto const kernels = GpuPayload::load(context_).value();
    auto const memory = GpuBuffer::allocate(context_, GetParam(), mebibyte).value();
    Chunks const chunks{100, 64};
    auto const payload = Payload::secret(7);
    ASSERT_TRUE(memory.set(std::byte{0xa5}, mebibyte));
    EXPECT_EQ(kernels.check(payload, memory, chunks)->detail, "chunk 100 was never written");
    ASSERT_TRUE(kernels.fill(payload, memory, chunks));
    auto const intact = kernels.check(payload, memory, chunks).value();
    EXPECT_EQ(intact.chunks, 64U);
    EXPECT_EQ(intact.chunks_wrong, 0U);
    EXPECT_EQ(intact.detail, "");

    // The host's result for the same seed.
    std::vector<std::byte> bytes(64 * verify::payload_chunk_bytes), expected(bytes.size());
    ASSERT_TRUE(memory.read(0, bytes));
    verify::fill(payload, 100 * verify::payload_chunk_bytes, expected);
    EXPECT_EQ(bytes, expected);

    bytes[5 * 64 + 63] ^= std::byte{16};
    bytes[9 * 64 + 20] ^= std::byte{1};
    bytes[9 * 64 + 21] ^= std::byte{1};
    ASSERT_TRUE(memory.write(0, bytes));
    auto const flipped = kernels.check(payload, memory, chunks).value();
    EXPECT_EQ(flipped.chunks_wrong, 2U);
    EXPECT_EQ(flipped.bytes_wrong, 3U);
    EXPECT_THAT(flipped.wrong, ElementsAre(105, 109));
    EXPECT_THAT(flipped.detail, HasSubstr("chunk 105 differs from byte 6783 on"));

    std::copy_n(expected.begin() + 17 * 64, 64, expected.begin() + 18 * 64);
    ASSERT_TRUE(memory.write(0, expected));
    EXPECT_EQ(kernels.check(payload, memory, chunks)->detail, "chunk 117 landed at chunk 118");
    EXPECT_EQ(kernels.check({payload.key, 8}, memory, chunks)->detail,
              "chunk 100 is stale: of epoch 7, expected 8");
}

// As the stand-in NIC judges it (tests/fakes/gpu/nic.cpp).
TEST_P(GpuBufferOf, IsToBeFoundInItsExportAtTheOffset) {
    auto const page = host_page_bytes();
    auto const memory = GpuBuffer::allocate(context_, GetParam(), mebibyte).value();
    auto const expected = memory.range().address + page + 100;
    auto const made = export_dma_buf(context_, {expected, 2 * page}).value();
    auto const descriptor = made.descriptor.get();
    EXPECT_TRUE(standin::holds(descriptor, made.range.offset, 2 * page, expected));
    EXPECT_FALSE(standin::holds(descriptor, 0, 2 * page, expected));
    EXPECT_FALSE(standin::holds(descriptor, made.range.offset + page, page, expected));
    EXPECT_FALSE(standin::holds(descriptor, made.range.offset, 3 * page, expected)) << "too long";
    std::size_t const all = ~std::size_t{0};
    EXPECT_FALSE(standin::holds(descriptor, all, 2, expected)) << "its end is past the last number";
    auto const other = GpuBuffer::allocate(context_, GetParam(), mebibyte).value();
    EXPECT_FALSE(standin::holds(descriptor, 0, page, other.range().address));
}

TEST(DmaBuf, RefusesManagedMemory) {
    StandinGpu const standin;
    auto const context = GpuContext::open(*standin.cuda, standin.gpu.device).value();
    CudaPointer address = 0;
    ASSERT_EQ(standin.cuda->calls.cuMemAllocManaged(&address, 65'536, 1), cuda_success);
    auto const refused = export_dma_buf(context, {address, 65'536});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::invalid_request);
    EXPECT_THAT(refused.error().remedy, HasSubstr("cudaMalloc"));
    standin.cuda->calls.cuMemFree_v2(address);
}

TEST(DmaBuf, OfAnOldDriverIsNamed) {
    StandinGpu const standin("h200", STANDIN_CUDA_OLD);
    auto const context = GpuContext::open(*standin.cuda, standin.gpu.device).value();
    EXPECT_FALSE(context.syncs_all());
    auto const memory = GpuBuffer::allocate(context, Allocation::plain, 1).value();
    auto const refused = export_dma_buf(context, memory.range());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("(CUDA 10.2) has no DMA-BUF"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("515"));
}

TEST(DmaBuf, WholePagesHoldTheRequest) {
    auto const range = whole_pages({0x1fff, 2}, 0x1000);
    EXPECT_EQ(range.pages.address, 0x1000U);
    EXPECT_EQ(range.pages.bytes, 0x2000U);
    EXPECT_EQ(range.offset, 0xfffU);
    EXPECT_EQ(whole_pages({0x2000, 0x1000}, 0x1000).pages.bytes, 0x1000U);
    EXPECT_EQ(whole_pages({0x10000, 1}, 0x10000).pages.bytes, 0x10000U) << "arm64's pages";
}

TEST(DmaBuf, ItsExporterIsThatOfTheKernel) {
    EXPECT_EQ(parse_exporter("pos:\t0\nflags:\t02\nsize:\t4096\ncount:\t1\nexp_name:\tnv_dmabuf\n"),
              "nv_dmabuf");
    EXPECT_FALSE(parse_exporter("pos:\t0\n"));
    EXPECT_FALSE(parse_exporter("exp_name:\t\n"));
    EXPECT_FALSE(parse_exporter("exp_name:\ta b\n"));
}

TEST(PinnedBytes, AreWhatTheKernelCountsInKibibytes) {
    EXPECT_EQ(parse_pinned_bytes("Name:\tvf-guest\nVmLck:\t       8 kB\nVmPin:\t    1028 kB\n"),
              1028U * 1024);
    EXPECT_EQ(parse_pinned_bytes("Name:\tkthreadd\n"), 0U) << "a kernel's thread has none";
    EXPECT_EQ(parse_pinned_bytes("\nVmPin:\t-1 kB\n"), 0U);
    EXPECT_EQ(parse_pinned_bytes("\nVmPin:"), 0U);
}

}  // namespace
}  // namespace vfmgr::guest::gpu
