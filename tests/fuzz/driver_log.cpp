// SPDX-License-Identifier: Apache-2.0
// Any bytes as a line of the kernel's log: every parsed part lies inside the line, and a line that
// is recognized contains the words it is recognized by.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/machine/driver_log.hpp"

namespace {

void require_inside(std::string_view line, std::string_view part) {
    require(part.empty() ||
            (part.data() >= line.data() && part.data() + part.size() <= line.data() + line.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    std::string_view const line(reinterpret_cast<char const*>(data), size);
    if (auto const said = parse_mlx5_line(line)) {
        require_inside(line, said->function);
        require_inside(line, said->text);
        require(!said->function.empty() && line.find(":(pid ") != line.npos);
        if (auto const error = parse_module_error(said->text)) {
            require_inside(line, error->error);
            require(error->module >= 0 && said->text.find("[error]") != line.npos);
        }
        if (auto const watts = parse_slot_power(said->text)) require(*watts >= 0);
        if (auto const severity = parse_health_severity(said->text)) require(*severity >= 0);
    }
    if (auto const said = parse_device_line(line)) {
        require_inside(line, said->driver);
        require_inside(line, said->text);
        require(!said->driver.empty());
        if (auto const refused = parse_refused_command(said->text)) {
            require_inside(line, refused->command);
            require_inside(line, refused->syndrome);
            require(line.find("failed, status ") != line.npos);
        }
    }
    if (auto const failure = parse_probe_failure(line)) {
        require_inside(line, failure->driver);
        require(failure->error >= 0 && line.find("failed with error -") != line.npos);
    }
    if (auto const said = parse_symbol_line(line)) {
        require_inside(line, said->module);
        require_inside(line, said->symbol);
        require(!said->module.empty() && !said->symbol.empty());
        require(said->symbol.find(' ') == line.npos);
    }
    if (auto const said = parse_other_kernel_line(line)) {
        require_inside(line, said->module);
        require_inside(line, said->built_for);
        require(!said->module.empty() && line.find(" version magic '") != line.npos);
    }
    if (auto const fault = parse_iommu_fault(line)) {
        require_inside(line, fault->address);
        require(line.find("AMD-Vi:") != line.npos || line.find("DMAR:") != line.npos);
    }
    return 0;
}
