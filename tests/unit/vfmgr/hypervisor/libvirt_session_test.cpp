// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "shorthand.hpp"
#include "vfmgr/hypervisor/libvirt_error.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using test::generous;
using test::in;
using ::testing::HasSubstr;

std::shared_ptr<LibvirtEvents> deaf() {
    return std::make_shared<LibvirtEvents>(nullptr, std::make_shared<DescribedVms>(std::nullopt));
}

TEST(LibvirtSession, KeepsOneConnection) {
    LibvirtSession session("test:///default", deaf());
    auto const ask = [&] {
        return session.call<virConnectPtr>(
            in(generous), "answer", [](virConnectPtr c) -> Result<virConnectPtr> { return c; });
    };
    auto const first = ask();
    auto const second = ask();
    ASSERT_TRUE(first);
    ASSERT_TRUE(second);
    EXPECT_EQ(*first, *second);
}

TEST(LibvirtSession, AMissingSocketIsUnavailable) {
    LibvirtSession session("qemu+unix:///system?socket=/nonexistent/libvirt-sock", deaf());
    auto const answer = session.call<void>(in(generous), "answer",
                                           [](virConnectPtr) -> Result<void> { return {}; });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().problem, Problem::unavailable);
    EXPECT_THAT(answer.error().detail, HasSubstr("socket=/nonexistent/libvirt-sock can't be "
                                                 "reached: "));
    EXPECT_EQ(answer.error().remedy,
              "start it: systemctl start libvirtd.socket (modular libvirt: virtqemud.socket)");
    ASSERT_EQ(answer.error().causes.size(), 1u);
    EXPECT_EQ(answer.error().causes[0].call, "virConnectOpen");
    EXPECT_EQ(answer.error().causes[0].code, "VIR_ERR_SYSTEM_ERROR");
}

TEST(LibvirtSession, ACallThatHangsIsAbandonedAndItsConnectionReplaced) {
    std::atomic<int> looks{0};
    LibvirtSession session("test:///default",
                           std::make_shared<LibvirtEvents>(
                               [&] { ++looks; }, std::make_shared<DescribedVms>(std::nullopt)));
    auto const connection = [](virConnectPtr c) -> Result<virConnectPtr> { return c; };
    auto const before = session.call<virConnectPtr>(in(generous), "answer", connection);
    ASSERT_TRUE(before);

    std::promise<void> release;
    std::shared_future<void> const released = release.get_future().share();
    auto const started = std::make_shared<std::atomic<bool>>(false);
    Result<void> hung;
    // On a slow machine the deadline may pass before the call's thread has reached libvirt.
    for (auto patience = 50ms; !*started; patience *= 2)
        hung = session.call<void>(in(patience), "do what takes for ever",
                                  [released, started](virConnectPtr) -> Result<void> {
                                      *started = true;
                                      released.wait();
                                      return {};
                                  });
    ASSERT_FALSE(hung);
    EXPECT_EQ(hung.error().problem, Problem::timed_out);
    EXPECT_EQ(hung.error().detail,
              "libvirt did not answer in time; it was asked to do what takes for ever");
    EXPECT_GE(looks, 1);

    auto const after = session.call<virConnectPtr>(in(generous), "answer", connection);
    ASSERT_TRUE(after);
    EXPECT_NE(*after, *before);
    release.set_value();
}

TEST(LibvirtSession, TooManyUnansweredCallsAreRefusedAtOnce) {
    LibvirtSession session("test:///default", deaf());
    auto const release = std::make_shared<std::promise<void>>();
    auto const released = std::make_shared<std::shared_future<void>>(release->get_future().share());
    auto const hang = [&] {
        return session.call<void>(in(std::chrono::milliseconds(0)), "wait",
                                  [released](virConnectPtr) -> Result<void> {
                                      released->wait();
                                      return {};
                                  });
    };
    auto answer = hang();
    for (int calls = 1; calls < 200 && answer.error().problem == Problem::timed_out; ++calls)
        answer = hang();
    EXPECT_EQ(answer.error().problem, Problem::unavailable);
    EXPECT_EQ(answer.error().detail, "libvirt at test:///default has not answered 128 calls");
    release->set_value();
}

TEST(LibvirtSession, AnExceptionInACallReachesTheCaller) {
    LibvirtSession session("test:///default", deaf());
    EXPECT_THROW((void)session.call<void>(
                     in(generous), "throw",
                     [](virConnectPtr) -> Result<void> { throw std::runtime_error("thrown"); }),
                 std::runtime_error);
}

TEST(LibvirtError, NamesCallCodeAndReason) {
    LibvirtSession session("test:///default", deaf());
    auto const answer =
        session.call<void>(in(generous), "find it", [](virConnectPtr c) -> Result<void> {
            EXPECT_EQ(virDomainLookupByName(c, "nobody"), nullptr);
            return fail(libvirt_error("virDomainLookupByName", "libvirt can't find VM nobody"));
        });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().problem, Problem::not_found);
    EXPECT_THAT(answer.error().detail, HasSubstr("libvirt can't find VM nobody: Domain not "
                                                 "found"));
    EXPECT_TRUE(is_libvirt_code(answer.error(), "VIR_ERR_NO_DOMAIN"));
    EXPECT_FALSE(is_libvirt_code(answer.error(), "VIR_ERR_NO_NETWORK"));
    EXPECT_FALSE(answer.error().remedy.empty());
}

TEST(LibvirtError, CodesWithoutANameKeepTheirNumber) {
    EXPECT_EQ(libvirt_code_name(68), "VIR_ERR_OPERATION_TIMEOUT");
    EXPECT_EQ(libvirt_code_name(9999), "VIR_ERR_9999");
}

}  // namespace
}  // namespace vfmgr
