// SPDX-License-Identifier: Apache-2.0
#include "service/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace vfmgr {
namespace {

TEST(LogLine, FieldsAfterTheMessage) {
    EXPECT_EQ(log_line("VF attached", {{"pf", "0000:01:00.0"}, {"vf", "3"}}),
              "VF attached pf=0000:01:00.0 vf=3");
    EXPECT_EQ(log_line("started", {}), "started");
}

TEST(LogLine, NoValueLooksLikeAnotherFieldOrLine) {
    EXPECT_EQ(log_line("VM gone", {{"vm", "a b"}}), "VM gone vm=\"a b\"");
    EXPECT_EQ(log_line("VM gone", {{"vm", "x admin=1"}}), "VM gone vm=\"x admin=1\"");
    EXPECT_EQ(log_line("VM gone", {{"vm", "a=b"}}), "VM gone vm=\"a=b\"");
    EXPECT_EQ(log_line("VM gone", {{"vm", "a\n<3>forged"}}), "VM gone vm=\"a\\n<3>forged\"");
    EXPECT_EQ(log_line("VM gone", {{"vm", "q\"\\\x1b[0m"}}), "VM gone vm=\"q\\\"\\\\\\x1b[0m\"");
    EXPECT_EQ(log_line("VM gone", {{"vm", ""}}), "VM gone vm=\"\"");
    EXPECT_EQ(log_line("two\nlines", {}), "two\\nlines");
}

TEST(Log, WritesOneLineWithItsPriorityToStderr) {
    // Not the device and inode of our stderr: the variable alone must not send it to the journal.
    ::setenv("JOURNAL_STREAM", "1:1", 1);
    ::testing::internal::CaptureStderr();
    log(Severity::warning, "libvirt is gone", {{"uri", "qemu:///system"}});
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "<4>libvirt is gone uri=qemu:///system\n");
    ::unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace vfmgr
