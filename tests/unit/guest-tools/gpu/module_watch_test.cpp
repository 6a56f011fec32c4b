// SPDX-License-Identifier: Apache-2.0
// The kernel's events wake a thread that waits for modules. These are events of a network device,
// which arrive on the same sockets: a test can't load a module.
#include "guest-tools/gpu/at_boot.hpp"

#include <fstream>
#include <thread>

#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/vfmgr/netlink/network_namespace.hpp"

namespace vfmgr::guest::gpu {
namespace {

namespace fs = std::filesystem;

class WatchedModules : public test::Networked {
  protected:
    void SetUp() override {
        Networked::SetUp();
        fs::create_directories(folder_.path() / "proc");
        write("ext4 4096 1 - Live 0x0\n");
    }
    void write(std::string const& modules) const {
        std::ofstream(folder_.path() / "proc/modules") << modules;
    }
    [[nodiscard]] static Result<void> make_an_event(std::string const& name) {
        VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
        return test::make_veth(socket, {name, name + "far"});
    }
    test::TemporaryFolder const folder_;
};

TEST_F(WatchedModules, AreLookedAtWhenTheKernelTellsOfSomething) {
    auto watch = ModuleWatch::open(folder_.path(), "6.1.0").value();
    ASSERT_TRUE(make_an_event("one"));
    EXPECT_EQ(watch.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(20)),
              Readiness::deadline_passed)
        << "nothing of interest has changed";
    std::thread kernel([this] {
        write("ext4 4096 1 - Live 0x0\nnvidia 4096 0 - Live 0x0\n");
        EXPECT_TRUE(make_an_event("two"));
    });
    EXPECT_EQ(watch.wait(test::soon()), Readiness::readable);
    kernel.join();
}

}  // namespace
}  // namespace vfmgr::guest::gpu
