// SPDX-License-Identifier: Apache-2.0
// Parsers read the form, not the values: what tools print is made here with values that nobody
// chose, and has to come back. Seeds are fixed, so that a failure can be repeated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "vfmgr/machine/driver_log.hpp"
#include "vfmgr/machine/firmware.hpp"
#include "vfmgr/machine/log_lines.hpp"
#include "vfmgr/machine/machine.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

constexpr int rounds = 300;

class Dice {
  public:
    explicit Dice(unsigned seed) : numbers_(seed) {}
    int below(int end) { return std::uniform_int_distribution(0, end - 1)(numbers_); }
    template <class List>
    auto const& one_of(List const& list) {
        return list[static_cast<std::size_t>(below(static_cast<int>(std::size(list))))];
    }
    std::string letters(std::string_view from, int min, int max) {
        std::string text;
        for (int n = min + below(max - min + 1); n > 0; --n) text += one_of(from);
        return text;
    }

  private:
    std::mt19937 numbers_;
};

constexpr std::string_view capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view digits = "0123456789";
constexpr std::string_view hexadecimal = "0123456789abcdef";

// --- mstconfig and mlxconfig ---

std::string some_value(Dice& dice) {
    switch (dice.below(4)) {
        case 0:
            return std::to_string(dice.below(1 << 20));
        case 1:
            return "0x" + dice.letters(hexadecimal, 1, 8);
        case 2:
            return fmt::format("Array[0..{}]", dice.below(200));
        default:
            return fmt::format("{}({})", dice.letters(capitals, 2, 20), dice.below(300));
    }
}

TEST(GeneratedForms, FirmwareTables) {
    static constexpr auto headers =
        std::to_array<std::string_view>({"", "Next Boot", "Default         Next Boot",
                                         "Default         Current         Next Boot"});
    Dice dice(1);
    for (int round = 0; round < rounds; ++round) {
        auto const columns = dice.below(3) + 1;
        auto const header = columns == 1 ? headers[static_cast<std::size_t>(dice.below(2))]
                                         : headers[static_cast<std::size_t>(columns)];
        std::string text = fmt::format("\nDevice #1:\n----------\n\nDevice:  0000:{}:00.0\n\n",
                                       dice.letters(hexadecimal, 2, 2));
        text += fmt::format("Configurations:      {}\n", header);
        std::vector<std::vector<std::string>> rows;
        for (int n = dice.below(12); n > 0; --n) {
            auto& row = rows.emplace_back();
            row.push_back(dice.letters(capitals, 3, 9) + "_" + std::to_string(n));
            if (dice.below(4) == 0) row.back() += fmt::format("[{}]", dice.below(16));
            for (int i = 0; i < columns; ++i) row.push_back(some_value(dice));
            text += dice.below(3) == 0 ? "*       " : "        ";
            for (auto const& word : row) text += fmt::format("{:<20} ", word);
            text += dice.below(2) == 0 ? "\n" : "\r\n";
        }
        text += "The '*' shows parameters with next value different from default/current value.\n";
        auto const read = parse_firmware_configuration(text);
        ASSERT_TRUE(read.not_understood.empty()) << read.not_understood.front();
        ASSERT_EQ(read.parameters.size(), rows.size()) << text;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            auto const& parameter = read.parameters[i];
            EXPECT_EQ(parameter.name, rows[i][0]);
            ASSERT_TRUE(parameter.next) << text;
            auto const& next = rows[i].back();
            auto const shown = parameter.next->text.starts_with("0x") ? parameter.next->text
                                                                      : to_string(*parameter.next);
            EXPECT_EQ(shown, next);
            EXPECT_EQ(parameter.current.has_value(), columns == 3);
            EXPECT_EQ(parameter.by_default.has_value(), columns > 1);
        }
    }
}

TEST(GeneratedForms, FirmwareRowsThatLackAValue) {
    Dice dice(2);
    for (int round = 0; round < rounds; ++round) {
        auto const name = dice.letters(capitals, 3, 12);
        auto const read = parse_firmware_configuration(fmt::format(
            "Configurations:   Default   Current   Next Boot\n  SRIOV_EN True(1) True(1) "
            "True(1)\n  {}   {}   {}\n",
            name, some_value(dice), some_value(dice)));
        EXPECT_EQ(read.parameters.size(), 1U);
        ASSERT_EQ(read.not_understood.size(), 1U);
        EXPECT_TRUE(read.not_understood[0].starts_with(name));
    }
}

// --- the kernel's log ---

struct Form {
    char const* what;
    std::string (*write)(Dice& dice, int level, std::string const& seconds,
                         std::string const& text);
    bool shows_level, shows_seconds;
};

std::string month_and_time(Dice& dice) {
    static constexpr auto months = std::to_array<std::string_view>(
        {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"});
    return fmt::format("{} {:>2} {:02}:{:02}:{:02}", dice.one_of(months), 1 + dice.below(31),
                       dice.below(24), dice.below(60), dice.below(60));
}

std::string iso_time(Dice& dice) {
    return fmt::format("20{:02}-{:02}-{:02}T{:02}:{:02}:{:02}", dice.below(100), 1 + dice.below(12),
                       1 + dice.below(28), dice.below(24), dice.below(60), dice.below(60));
}

constexpr auto level_names = std::to_array<std::string_view>(
    {"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"});

constexpr auto forms = std::to_array<Form>({
    {"/dev/kmsg",
     [](Dice& dice, int level, std::string const& seconds, std::string const& text) {
         auto micros = seconds;
         std::erase(micros, '.');
         std::erase(micros, ' ');
         return fmt::format("{},{},{},-{};{}", level, 1 + dice.below(9999), micros,
                            dice.below(2) == 0 ? "" : ",caller=T12", text);
     },
     true, true},
    {"dmesg",
     [](Dice&, int, std::string const& seconds, std::string const& text) {
         return fmt::format("[{}] {}", seconds, text);
     },
     false, true},
    {"dmesg -r",
     [](Dice&, int level, std::string const& seconds, std::string const& text) {
         return fmt::format("<{}>[{}] {}", level, seconds, text);
     },
     true, true},
    {"dmesg -x",
     [](Dice&, int level, std::string const& seconds, std::string const& text) {
         return fmt::format("kern  :{:<6}: [{}] {}", level_names[static_cast<std::size_t>(level)],
                            seconds, text);
     },
     true, true},
    {"dmesg, with callers",
     [](Dice& dice, int, std::string const& seconds, std::string const& text) {
         return fmt::format("[{}][{:>6}] {}", seconds, fmt::format("T{}", dice.below(99999)), text);
     },
     false, true},
});

constexpr auto dated_forms = std::to_array<Form>({
    {"dmesg -T",
     [](Dice& dice, int, std::string const&, std::string const& text) {
         return fmt::format("[Mon {} 20{:02}] {}", month_and_time(dice), dice.below(100), text);
     },
     false, false},
    {"dmesg --time-format iso",
     [](Dice& dice, int, std::string const&, std::string const& text) {
         return fmt::format("{},{:06}+00:00 {}", iso_time(dice), dice.below(1000000), text);
     },
     false, false},
    {"journalctl -k",
     [](Dice& dice, int, std::string const&, std::string const& text) {
         return fmt::format("{} {} kernel: {}", month_and_time(dice),
                            dice.letters("abcdefgh-0123", 1, 12), text);
     },
     false, false},
    {"journalctl -k -o short-monotonic",
     [](Dice& dice, int, std::string const& seconds, std::string const& text) {
         return fmt::format("[{}] {} kernel: {}", seconds, dice.letters("abcdefgh", 1, 12), text);
     },
     false, true},
    {"journalctl -k -o short-iso",
     [](Dice& dice, int, std::string const&, std::string const& text) {
         return fmt::format("{}+0100 {} kernel: {}", iso_time(dice),
                            dice.letters("abcdefgh", 1, 12), text);
     },
     false, false},
    {"syslog's file",
     [](Dice& dice, int, std::string const& seconds, std::string const& text) {
         return fmt::format("{} {} kernel: [{}] {}", month_and_time(dice),
                            dice.letters("abcdefgh", 1, 12), seconds, text);
     },
     false, true},
    {"rsyslog's file with precise times",
     [](Dice& dice, int, std::string const& seconds, std::string const& text) {
         return fmt::format("{}.{:06}+01:00 {} kernel: [{}] {}", iso_time(dice),
                            dice.below(1000000), dice.letters("abcdefgh", 1, 12), seconds, text);
     },
     false, true},
});

std::string some_address(Dice& dice) {
    return fmt::format("{}:{}:{}.{}", dice.letters(hexadecimal, 4, 4),
                       dice.letters(hexadecimal, 2, 2), fmt::format("{:02x}", dice.below(32)),
                       dice.below(8));
}

TEST(GeneratedForms, LogLinesInAllForms) {
    Dice dice(3);
    std::vector<Form> all(forms.begin(), forms.end());
    all.insert(all.end(), dated_forms.begin(), dated_forms.end());
    for (int round = 0; round < rounds; ++round)
        for (auto const& form : all) {
            auto const level = dice.below(8);
            auto const seconds = fmt::format("{:>5}.{:06}", dice.below(90000), dice.below(1000000));
            auto const text = fmt::format("mlx5_core {}: {}", some_address(dice),
                                          dice.letters("abcdefgh :()[]=,0123", 1, 60) + "x");
            auto const written = form.write(dice, level, seconds, text) + "\n";
            auto const log = parse_kernel_log(written);
            ASSERT_EQ(log.lines.size(), 1U) << form.what << ": " << written;
            EXPECT_EQ(log.lines[0].text, text) << form.what;
            if (form.shows_level) {
                EXPECT_EQ(log.lines[0].level, level) << form.what;
            }
            if (form.shows_seconds) {
                EXPECT_NEAR(log.lines[0].seconds, std::stod(seconds), 1e-6) << form.what;
            }
        }
}

TEST(GeneratedForms, LinesOfDrivers) {
    static constexpr auto drivers =
        std::to_array<std::string_view>({"mlx5_core", "mlx4_core", "ice", "bnxt_en", "i40e"});
    Dice dice(4);
    for (int round = 0; round < rounds; ++round) {
        std::string const driver(dice.one_of(drivers));
        auto const address = some_address(dice);
        auto const error = 1 + dice.below(130);
        auto const line = fmt::format("{} {}: probe with driver {} failed with error -{}", driver,
                                      address, driver, error);
        auto const older =
            fmt::format("{}: probe of {} failed with error -{}", driver, address, error);
        for (auto const& one : {line, older}) {
            auto const failure = parse_probe_failure(one);
            ASSERT_TRUE(failure) << one;
            EXPECT_EQ(failure->driver, driver);
            EXPECT_EQ(to_string(failure->device), address);
            EXPECT_EQ(failure->error, error);
        }
        auto const text = dice.letters("abcdef 0123", 1, 30) + "x";
        auto const plain = fmt::format("{} {}: {}", driver, address, text);
        auto const said = parse_device_line(plain);
        ASSERT_TRUE(said) << plain;
        EXPECT_EQ(said->driver, driver);
        EXPECT_EQ(to_string(said->device), address);
    }
}

// --- systemctl show, lspci's link speeds ---

TEST(GeneratedForms, UnitsInAnyOrderOfTheirProperties) {
    Dice dice(5);
    for (int round = 0; round < rounds; ++round) {
        std::map<std::string, Unit, std::less<>> units;
        std::string text;
        for (int n = 1 + dice.below(5); n > 0; --n) {
            auto const id = fmt::format("{}{}.service", dice.letters("abcdef-@", 1, 9), n);
            Unit unit{dice.letters("abcdef-", 1, 9), dice.letters("abcdef", 1, 9),
                      dice.letters("abcdef", 0, 9)};
            std::vector<std::string> lines{"Id=" + id, "LoadState=" + unit.load,
                                           "ActiveState=" + unit.active,
                                           "UnitFileState=" + unit.file};
            for (auto i = lines.size() - 1; i > 0; --i)
                std::swap(lines[i],
                          lines[static_cast<std::size_t>(dice.below(static_cast<int>(i + 1)))]);
            for (auto const& line : lines) text += line + "\n";
            text += "\n";
            units.emplace(id, std::move(unit));
        }
        auto const read = parse_units(text);
        ASSERT_EQ(read.size(), units.size()) << text;
        for (auto const& [id, unit] : units) {
            auto const found = read.find(id);
            ASSERT_NE(found, read.end()) << text;
            EXPECT_EQ(found->second.load, unit.load);
            EXPECT_EQ(found->second.active, unit.active);
            EXPECT_EQ(found->second.file, unit.file);
        }
    }
}

TEST(GeneratedForms, LinkSpeeds) {
    for (auto const* const speed : {"2.5", "5", "5.0", "8", "8.0", "16.0", "32.0", "64.0", "128.0"})
        for (auto const* const suffix : {" GT/s", " GT/s PCIe"}) {
            auto const read = parse_link_speed(std::string(speed) + suffix);
            ASSERT_TRUE(read) << speed << suffix;
            EXPECT_DOUBLE_EQ(*read, std::stod(speed));
        }
}

TEST(GeneratedForms, KernelParameters) {
    Dice dice(6);
    for (int round = 0; round < rounds; ++round) {
        std::vector<KernelParameter> all;
        std::string line;
        for (int n = dice.below(9); n > 0; --n) {
            KernelParameter one{dice.letters("abcdefgh._-0123", 1, 20),
                                dice.below(2) == 0 ? "" : dice.letters("abcdefgh,=:/0123", 1, 20)};
            if (one.name == "--") one.name = "x";
            line +=
                (line.empty() ? "" : " ") + one.name + (one.value.empty() ? "" : "=" + one.value);
            all.push_back(std::move(one));
        }
        EXPECT_EQ(parse_kernel_parameters(line + "\n"), all) << line;
    }
}

}  // namespace
}  // namespace vfmgr::checks
