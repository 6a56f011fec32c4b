// SPDX-License-Identifier: Apache-2.0
// Loading, waiting and keeping at boot, in a folder laid out like a machine of
// tests/fixtures/bundles, with a modprobe that behaves as the kernel does. The kernel's refusals
// and their words are transcribed: this never ran beside a GPU and an RDMA NIC.
#include "guest-tools/gpu/load_peermem.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "guest-tools/gpu/at_boot.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "tests/unit/repository.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/machine/bundle.hpp"

namespace vfmgr::guest::gpu {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto modules_list = "/lib/modules/5.15.0-126-generic/modules.dep";
constexpr auto our_file = "/etc/modules-load.d/vfmgr-peermem.conf";

std::string content_of(fs::path const& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

class Peermem : public testing::Test {
  protected:
    // A host with OFED and NVIDIA's proprietary driver, with nvidia-peermem not loaded.
    Peermem() {
        auto const bundle = test::repository() / "tests/fixtures/bundles/gpu-host-ofed.json";
        lay_out(checks::from_bundle(content_of(bundle)).value());
        write("/proc/modules", without("nvidia_peermem"));
        fs::remove_all(root() + "/sys/module/nvidia_peermem");
        fs::remove(root() + "/etc/modules-load.d/nvidia-peermem.conf");
        program("modprobe", "echo nvidia_peermem 4096 0 - Live 0x0 >> " + root() + "/proc/modules");
        program("systemctl", "");
    }

    [[nodiscard]] std::string root() const { return folder_.path() / "root"; }
    [[nodiscard]] Places places() const {
        return {root(), folder_.file("modprobe"), folder_.file("systemctl")};
    }
    [[nodiscard]] std::string asked_of(std::string const& program) const {
        return content_of(folder_.file(program + ".asked"));
    }
    void write(std::string const& path, std::string const& text) const {
        fs::create_directories(fs::path(root() + path).parent_path());
        std::ofstream(root() + path, std::ios::binary) << text;
    }
    [[nodiscard]] std::string without(std::string const& module) const {
        std::istringstream lines(content_of(root() + "/proc/modules"));
        std::string kept;
        for (std::string line; std::getline(lines, line);)
            if (!line.starts_with(module + " ")) kept += line + '\n';
        return kept;
    }
    void program(std::string const& name, std::string const& does) const {
        auto const file = folder_.file(name);
        std::ofstream(file) << "#!/bin/sh\necho \"$@\" >> " << file << ".asked\n" << does << "\n";
        ::chmod(file.c_str(), 0755);
    }
    // As depmod does at the end of a build.
    void put_list(std::string const& text) const {
        write(std::string(modules_list) + ".new", text);
        fs::rename(root() + modules_list + ".new", root() + modules_list);
    }
    Result<PeermemOutcome> load(std::optional<Deadline> until = {}) {
        return load_peermem(places(), {}, until,
                            [this](std::string const& line) { told_.push_back(line); });
    }

    std::vector<std::string> told_;

  private:
    void lay_out(checks::Facts const& facts) const {
        for (auto const& [path, link] : facts.links) {
            auto const at = fs::path(root() + path);
            fs::create_directories(at.parent_path());
            fs::create_directory_symlink(link.bytes, at);
            if (checks::matches("/sys/bus/pci/devices/*", path))
                fs::create_directories(at.parent_path() / link.bytes);
        }
        for (auto const& [path, fact] : facts.files) write(path, fact.bytes);
        for (auto const& [path, names] : facts.folders)
            for (auto const& name : names.names)
                if (std::error_code ignored; !fs::exists(root() + path + "/" + name, ignored))
                    fs::create_directories(root() + path + "/" + name, ignored);
    }
    test::TemporaryFolder const folder_;
};

TEST_F(Peermem, IsLoadedAndSeenToBe) {
    auto const outcome = load().value();
    EXPECT_EQ(outcome.end, PeermemEnd::loaded) << outcome.plan.reason;
    EXPECT_EQ(asked_of("modprobe"), "nvidia-peermem\n");
    EXPECT_EQ(load()->end, PeermemEnd::was_loaded);
    EXPECT_EQ(asked_of("modprobe"), "nvidia-peermem\n") << "not asked again";
    EXPECT_THAT(told_, IsEmpty());
}

TEST_F(Peermem, IsNotLoadedWhenOnlyModprobeSaysSo) {
    program("modprobe", "exit 0");
    auto const outcome = load().value();
    EXPECT_EQ(outcome.end, PeermemEnd::refused);
    EXPECT_THAT(outcome.refusal->evidence,
                Contains(Field(&Evidence::text, HasSubstr("the module is not loaded"))));
}

TEST_F(Peermem, TellsWhatTheKernelRefusedAndWhy) {
    program("modprobe",
            "echo \"modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\" >&2\n"
            "exit 1");
    auto const outcome = load().value();
    EXPECT_EQ(outcome.end, PeermemEnd::refused);
    EXPECT_EQ(outcome.refusal->rule, "gpu.install_order");
    EXPECT_THAT(outcome.refusal->detail, HasSubstr("without a message in the kernel log"));
    EXPECT_THAT(outcome.refusal->evidence,
                ElementsAre(AllOf(Field(&Evidence::source, "modprobe"),
                                  Field(&Evidence::text, HasSubstr("Invalid argument")))));
}

TEST_F(Peermem, IsNeverTriedWhereItIsImpossible) {
    put_list("updates/dkms/nvidia.ko:\nupdates/dkms/ib_core.ko:\n");
    auto const outcome = load(steady_clock::now() + 1h).value();
    EXPECT_EQ(outcome.end, PeermemEnd::impossible) << "at once, however long it may wait";
    EXPECT_EQ(asked_of("modprobe"), "");
}

TEST_F(Peermem, DoesNotWaitUnlessItIsTold) {
    write("/proc/modules", without("nvidia"));
    fs::remove_all(root() + "/sys/module/nvidia");
    EXPECT_EQ(load()->end, PeermemEnd::not_in_time);
    EXPECT_THAT(told_, IsEmpty());
    auto const late = load(steady_clock::now() + 1ms).value();
    EXPECT_EQ(late.end, PeermemEnd::not_in_time);
    EXPECT_THAT(told_, ElementsAre(HasSubstr("waiting for NVIDIA's driver: nvidia is installed")));
    EXPECT_EQ(asked_of("modprobe"), "") << "it would pull in what it should wait for";
}

TEST_F(Peermem, WaitsForOneAfterTheOther) {
    auto const all = content_of(root() + "/proc/modules");
    auto const list = content_of(root() + modules_list);
    write("/proc/modules", "ext4 4096 1 - Live 0x0\n");
    fs::remove_all(root() + "/sys/module");
    std::thread others;
    auto const outcome =
        load_peermem(places(), {}, steady_clock::now() + 20s, [&](std::string const& line) {
            told_.push_back(line);
            if (others.joinable()) others.join();
            bool const first = told_.size() == 1;
            others = std::thread([this, first, list, all] {
                write("/proc/modules",
                      first ? "mlx5_core 1 0 - Live 0x0\nib_core 1 0 - Live 0x0\n" : all);
                put_list(list);
            });
        });
    others.join();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->end, PeermemEnd::loaded) << outcome->plan.reason;
    EXPECT_THAT(told_, ElementsAre(AllOf(HasSubstr("NVIDIA's driver"), HasSubstr("OFED")),
                                   AllOf(HasSubstr("NVIDIA's driver"), Not(HasSubstr("OFED")))));
}

TEST_F(Peermem, WatchIsWokenByWhatMattersOnly) {
    auto watch = ModuleWatch::open(root(), "5.15.0-126-generic").value();
    EXPECT_EQ(watch.wait(steady_clock::now()), Readiness::deadline_passed);
    auto modules = content_of(root() + "/proc/modules");
    auto const uses = modules.find(" 1 - Live");
    ASSERT_NE(uses, modules.npos);
    write("/proc/modules", modules.replace(uses, 2, " 7"));
    write("/lib/modules/5.15.0-126-generic/modules.alias", "alias x y\n");
    EXPECT_EQ(watch.wait(steady_clock::now() + 1ms), Readiness::deadline_passed);
    std::thread depmod([this] { put_list("updates/dkms/nvidia.ko:\n"); });
    EXPECT_EQ(watch.wait(steady_clock::now() + 20s), Readiness::readable);
    depmod.join();
    EXPECT_EQ(watch.wait(steady_clock::now()), Readiness::deadline_passed) << "told once";
}

// --- at boot ---

TEST_F(Peermem, IsKeptByAFileThatSaysWhose) {
    auto const kept = keep_at_boot(places(), "nvidia-peermem");
    ASSERT_TRUE(kept) << kept.error().detail;
    EXPECT_EQ(kept->by, BootBy::file);
    EXPECT_THAT(content_of(root() + our_file),
                AllOf(HasSubstr("# Written by vf-guest peermem --at-boot"),
                      HasSubstr("\nnvidia-peermem\n")));
    auto const again = keep_at_boot(places(), "nvidia-peermem");
    ASSERT_TRUE(again);
    EXPECT_EQ(again->by, BootBy::file) << "its own file is nobody else's";
    auto const left = leave_at_boot(places());
    ASSERT_TRUE(left);
    EXPECT_EQ(left->by, BootBy::nobody) << left->detail;
    EXPECT_FALSE(fs::exists(root() + our_file));
    EXPECT_EQ(asked_of("systemctl"), "");
}

TEST_F(Peermem, LeavesSomebodyElsesFileAlone) {
    write(our_file, "nvidia-peermem\n");
    auto const kept = keep_at_boot(places(), "nvidia-p2p");
    ASSERT_FALSE(kept);
    EXPECT_EQ(kept.error().problem, Problem::conflict);
    EXPECT_TRUE(leave_at_boot(places()));
    EXPECT_EQ(content_of(root() + our_file), "nvidia-peermem\n");
}

TEST_F(Peermem, IsKeptByTheUnitWhereAFileComesTooEarly) {
    write("/usr/sbin/akmods", "#!/bin/sh\n");
    auto const without_unit = keep_at_boot(places(), "nvidia-peermem");
    ASSERT_TRUE(without_unit);
    EXPECT_EQ(without_unit->by, BootBy::file);
    EXPECT_THAT(without_unit->detail, HasSubstr("vf-guest-peermem.service is not installed"));
    write("/usr/lib/systemd/system/vf-guest-peermem.service", "[Unit]\n");
    auto const kept = keep_at_boot(places(), "nvidia-peermem");
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->by, BootBy::unit);
    EXPECT_EQ(asked_of("systemctl"), "enable vf-guest-peermem.service\n");
    auto const wants = root() + "/etc/systemd/system/multi-user.target.wants";
    fs::create_directories(wants);
    fs::create_symlink("/usr/lib/x", wants + "/vf-guest-peermem.service");
    ASSERT_TRUE(leave_at_boot(places()));
    EXPECT_THAT(asked_of("systemctl"), HasSubstr("disable vf-guest-peermem.service\n"));
    program("systemctl", "echo 'Failed to disable: Read-only file system' >&2; exit 1");
    auto const refused = leave_at_boot(places());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("Read-only file system"));
}

// --- kernel and modprobe messages, transcribed from their sources ---

struct Said {
    std::string modprobe, logged, rule, cause;
};

TEST(LoadRefusals, AreExplained) {
    auto const could_not = [](std::string const& why) {
        return "modprobe: ERROR: could not insert 'nvidia_peermem': " + why + "\n";
    };
    std::vector<Said> const all{
        {could_not("Invalid argument"),
         "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
         "gpu.install_order", "against another RDMA stack"},
        {could_not("Unknown symbol in module, or unknown parameter (see dmesg)"),
         "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)",
         "gpu.install_order", "has no peer memory"},
        {could_not("Unknown symbol in module, or unknown parameter (see dmesg)"),
         "nvidia_peermem: Unknown symbol nvidia_p2p_get_pages (err -2)", "gpu.driver",
         "another version of NVIDIA's driver"},
        {could_not("Exec format error"),
         "nvidia_peermem: version magic '5.15.0-125-generic SMP' should be '5.15.0-126-generic "
         "SMP'",
         "stack.dkms", "for another kernel"},
        {could_not("Key was rejected by service"),
         "Loading of module with unavailable key is rejected", "stack.secure_boot",
         "a key that this machine does not know"},
        {could_not("Key was rejected by service"), "", "stack.secure_boot", "signature"},
        {could_not("Operation not permitted"),
         "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
         "stack.secure_boot", "locked down"},
        {could_not("Operation not permitted"), "", "gpu.peermem", "CAP_SYS_MODULE"},
        {could_not("Invalid argument"), "", "gpu.install_order", "without a message"},
        {could_not("No such device"), "", "gpu.driver", "finds no GPU"},
        {"modprobe: FATAL: Module nvidia-peermem not found in directory /lib/modules/6.1\n", "",
         "gpu.peermem", "no such module for this kernel"},
        {"", "", "gpu.peermem", "did not load"},
    };
    for (auto const& one : all) {
        std::vector<std::string> const logged{one.logged, "mlx5_core 0000:19:00.0: is blacklisted"};
        auto const finding = explain_refusal("nvidia_peermem", one.modprobe, logged);
        EXPECT_EQ(finding.rule, one.rule) << one.modprobe << one.logged;
        EXPECT_THAT(finding.detail, HasSubstr(one.cause)) << one.modprobe << one.logged;
        ASSERT_TRUE(finding.remedy);
        EXPECT_FALSE(finding.remedy->note.empty());
        for (auto const& evidence : finding.evidence)
            EXPECT_THAT(evidence.text, Not(HasSubstr("mlx5_core")));
    }
    auto const integrated = explain_refusal("nvidia_p2p", could_not("Invalid argument"), {});
    EXPECT_EQ(integrated.rule, "gpu.igpu") << "it knows no OFED";
}

}  // namespace
}  // namespace vfmgr::guest::gpu
