// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace vfmgr {
namespace {

virError reported(int domain, int code, int number) {
    virError error{};
    error.domain = domain;
    error.code = code;
    error.int1 = number;
    return error;
}

TEST(LacksOtherDaemon, WhenItsSocketDoesNotExist) {
    EXPECT_TRUE(lacks_other_daemon(reported(VIR_FROM_RPC, VIR_ERR_SYSTEM_ERROR, ENOENT)));
}

TEST(LacksOtherDaemon, NotWhenItRefusesOrTheConnectionBroke) {
    EXPECT_FALSE(lacks_other_daemon(reported(VIR_FROM_RPC, VIR_ERR_SYSTEM_ERROR, ECONNREFUSED)));
    EXPECT_FALSE(lacks_other_daemon(reported(VIR_FROM_RPC, VIR_ERR_SYSTEM_ERROR, ECONNRESET)));
    EXPECT_FALSE(lacks_other_daemon(reported(VIR_FROM_QEMU, VIR_ERR_SYSTEM_ERROR, ENOENT)));
}

}  // namespace
}  // namespace vfmgr
