// SPDX-License-Identifier: Apache-2.0
#include "service/config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "api/os/file.hpp"
#include "api/types/addresses.hpp"
#include "service/auth/authenticate.hpp"
#include "service/config_values.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t file_bytes_max = 1024 * 1024;

// "none" removes a role that the defaults or an earlier file assigned.
template <class Map>
std::string set_role(Map& roles, typename Map::key_type const& who, toml::node const& node) {
    auto const value = node.value_exact<std::string>();
    auto const role = value ? enum_value<Role>(*value) : std::nullopt;
    if (role)
        roles[who] = *role;
    else if (value == "none")
        roles.erase(who);
    else
        return fmt::format("must be one of {}, none", enum_choices<Role>());
    return {};
}

// "operator", or {role = "operator", tenant = "blue"}.
std::string set_client(std::map<std::string, ClientRole>& clients, std::string const& name,
                       toml::node const& node) {
    auto const* const table = node.as_table();
    if (!table) return set_role(clients, name, node);
    auto const word = [&](char const* key) {
        auto const* const value = table->get(key);
        return value ? value->value_exact<std::string>() : std::optional<std::string>();
    };
    auto const role = enum_value<Role>(word("role").value_or(""));
    auto const tenant = word("tenant");
    if (table->size() != 2 || !role || !tenant)
        return "must be a role, or of the form {role = \"operator\", tenant = \"blue\"}";
    if (!can_be_a_tenants(*tenant))
        return fmt::format("has a tenant whose name {}", rule_of_tenant_names);
    if (*role == Role::admin) return "can't be an admin of a tenant: an admin has no limits";
    clients[name] = ClientRole(*role, *tenant);
    return {};
}

class FileReader {
  public:
    FileReader(std::string file, Config& config, std::vector<Violation>& violations)
        : file_(std::move(file)), config_(config), violations_(violations) {}

    void read(std::string const& content) {
        try {
            read_root(toml::parse(content, file_));
        } catch (toml::parse_error const& error) {
            complain(error.source(), std::string(error.description()));
        }
        // toml++ returns keys by name; admins read files by line.
        std::ranges::sort(faults_);
        for (auto& fault : faults_)
            violations_.push_back(
                {fmt::format("{}:{}", file_, fault.line), std::move(fault.detail)});
    }

  private:
    struct Fault {
        std::uint32_t line;
        std::string detail;
        auto operator<=>(Fault const&) const = default;
    };

    void read_root(toml::table const& root) {
        auto& c = config_;
        read_table(root, "",
                   {{"state_dir", absolute_path(c.state_dir)},
                    {"libvirt_uri", text(c.libvirt_uri)},
                    {"listen", table("listen.", {{"unix", unix_keys()}, {"tls", tls_keys()}})},
                    {"guest_plane",
                     table("guest_plane.",
                           {{"vsock_port", integer(c.guest_plane_vsock_port, {1, 0xfffffffe})}})},
                    {"tls", client_keys()},
                    {"roles", table("roles.", {{"groups", group_roles()}, {"uids", uid_roles()}})},
                    {"rdma_links",
                     table("rdma_links.", {{"trusted_netdevs", netdevs(c.trusted_netdevs)}})},
                    {"bounds", table("bounds.", {{"addresses", given(c.bounds.addresses, prefixes)},
                                                 {"pfs", pf_bounds()}})},
                    {"limits", limit_keys()}});
    }
    Setter unix_keys() {
        return table("listen.unix.", {{"path", absolute_path(config_.unix_socket.path)},
                                      {"group", text(config_.unix_socket.group)}});
    }
    Setter tls_keys() {
        auto& tls = config_.tls;
        return table("listen.tls.", {{"enabled", boolean(tls.enabled)},
                                     {"address", ip_address(tls.address)},
                                     {"port", integer(tls.port, {1, 65535})},
                                     {"certificate_file", absolute_path(tls.certificate_file)},
                                     {"key_file", absolute_path(tls.key_file)}});
    }
    Setter client_keys() {
        return table("tls.", {{"client_ca_file", absolute_path(config_.tls.client_ca_file)},
                              {"client_crl_file", absolute_path(config_.tls.client_crl_file)},
                              {"clients", client_roles()}});
    }
    Setter limit_keys() {
        auto& limits = config_.limits;
        return table(
            "limits.",
            {{"body_bytes_max", integer(limits.body_bytes_max, {1024, 16 * 1024 * 1024})},
             {"header_bytes_max", integer(limits.header_bytes_max, {1024, 1024 * 1024})},
             {"connections_max", integer(limits.connections_max, {1, 65536})},
             {"connections_per_peer_max", integer(limits.connections_per_peer_max, {1, 65536})},
             {"read_seconds_max", integer(limits.read_seconds_max, some_seconds)},
             {"idle_seconds_max", integer(limits.idle_seconds_max, some_seconds)},
             {"answer_seconds_max", integer(limits.answer_seconds_max, some_seconds)},
             {"strangers_per_peer_max", integer(limits.strangers_per_peer_max, {1, 65536})},
             {"first_request_seconds_max", integer(limits.first_request_seconds_max, some_seconds)},
             {"event_streams_max", integer(config_.events.streams_max, {1, 65536})},
             {"event_streams_per_peer_max",
              integer(config_.events.streams_per_peer_max, {1, 65536})},
             {"event_backlog_max", integer(config_.events.recent.events, {16, 65536})},
             {"changes_burst", integer(config_.changes.burst, {1, 1'000'000})},
             {"changes_per_second", integer(config_.changes.per_second, {1, 1'000'000})}});
    }
    Setter pf_bounds() {
        return entries("bounds.pfs.",
                       [this](std::string const& name, toml::node const& node) -> std::string {
                           auto const pf = PciAddress::parse(name);
                           if (!pf && name != "default")
                               return "must be a PF's PCI address, or default";
                           if (!node.is_table()) return "must be a table";
                           auto& bounds = pf ? config_.bounds.pfs[*pf] : config_.bounds.default_pf;
                           read_table(*node.as_table(), fmt::format("bounds.pfs.{}.", name),
                                      {{"managed", given(bounds.managed, boolean)},
                                       {"num_vfs_max", given(bounds.num_vfs_max, number_of_vfs)},
                                       {"vlans", given(bounds.vlans, vlan_ranges)},
                                       {"trust", given(bounds.trust, boolean)},
                                       {"spoofchk_off", given(bounds.spoofchk_off, boolean)},
                                       {"drivers", given(bounds.drivers, drivers)},
                                       {"firmware", given(bounds.firmware, boolean)}});
                           return {};
                       });
    }
    Setter group_roles() {
        return entries("roles.groups.", [this](std::string const& name, toml::node const& node) {
            return set_role(config_.roles.groups, name, node);
        });
    }
    Setter uid_roles() {
        return entries("roles.uids.",
                       [this](std::string const& name, toml::node const& node) -> std::string {
                           std::uint32_t uid = 0;
                           auto const* const end = name.data() + name.size();
                           auto const parsed = std::from_chars(name.data(), end, uid);
                           if (parsed.ec != std::errc{} || parsed.ptr != end)
                               return "must be named by a uid";
                           return set_role(config_.roles.uids, uid, node);
                       });
    }

    Setter client_roles() {
        return entries("tls.clients.",
                       [this](std::string const& name, toml::node const& node) -> std::string {
                           if (!http::valid_certificate_name(name))
                               return "must be named by 1 to 255 visible ASCII characters";
                           return set_client(config_.roles.clients, name, node);
                       });
    }

    Setter table(std::string prefix, Keys keys) {
        return [this, prefix = std::move(prefix),
                keys = std::move(keys)](toml::node const& node) -> std::string {
            if (!node.is_table()) return "must be a table";
            read_table(*node.as_table(), prefix, keys);
            return {};
        };
    }
    // A table whose keys the admin chooses.
    Setter entries(std::string prefix,
                   std::function<std::string(std::string const&, toml::node const&)> set) {
        return [this, prefix = std::move(prefix),
                set = std::move(set)](toml::node const& node) -> std::string {
            if (!node.is_table()) return "must be a table";
            for (auto const& [key, value] : *node.as_table())
                if (auto wrong = set(std::string(key.str()), value); !wrong.empty())
                    complain(value.source(), fmt::format("{}{} {}", prefix, key.str(), wrong));
            return {};
        };
    }

    void read_table(toml::table const& table, std::string const& prefix, Keys const& keys) {
        for (auto const& [key, node] : table) {
            auto const known = keys.find(key.str());
            if (known == keys.end()) {
                complain(key.source(), fmt::format("{}{} is not known", prefix, key.str()));
                continue;
            }
            if (auto wrong = known->second(node); !wrong.empty())
                complain(node.source(), fmt::format("{}{} {}", prefix, key.str(), wrong));
        }
    }
    void complain(toml::source_region const& where, std::string detail) {
        faults_.push_back({where.begin.line, std::move(detail)});
    }

    std::string file_;
    Config& config_;
    std::vector<Violation>& violations_;
    std::vector<Fault> faults_;
};

enum class Missing { allowed, refused };

void read_config_file(std::string const& file, Missing missing, Config& config,
                      std::vector<Violation>& violations) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        int const error = errno;
        if (missing == Missing::refused || error != ENOENT)
            violations.push_back({file, "can't be read: " + errno_name(error)});
        return;
    }
    std::string content(file_bytes_max + 1, '\0');
    stream.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<std::size_t>(stream.gcount()));
    if (stream.bad()) return violations.push_back({file, "can't be read"});
    if (content.size() > file_bytes_max)
        return violations.push_back({file, fmt::format("is longer than {} bytes", file_bytes_max)});
    FileReader(file, config, violations).read(content);
}

std::vector<std::string> toml_files(std::string const& folder, std::vector<Violation>& violations) {
    std::error_code error;
    std::vector<std::string> files;
    for (auto const& file : paths_in(folder, error))
        if (file.extension() == ".toml") files.push_back(file.string());
    if (error && error != std::errc::no_such_file_or_directory)
        violations.push_back({folder, "can't be read: " + errno_name(error.value())});
    return files;
}

Result<void> none_of(std::vector<Violation> violations) {
    if (violations.empty()) return {};
    Error error{Problem::invalid_request, {}, "correct it; vfmgr.toml(5) describes every key"};
    error.detail = fmt::format("{}: {}", violations.front().pointer, violations.front().detail);
    if (violations.size() > 1) error.detail += fmt::format(" (and {} more)", violations.size() - 1);
    error.violations = std::move(violations);
    return fail(std::move(error));
}

// What no single key shows.
std::vector<std::string> contradictions(Config const& config) {
    std::vector<std::string> found;
    auto const& tls = config.tls;
    if (tls.certificate_file.empty() != tls.key_file.empty())
        found.emplace_back(
            "listen.tls.certificate_file and listen.tls.key_file must be given together");
    if (!tls.client_ca_file.empty()) return found;
    if (!tls.client_crl_file.empty())
        found.emplace_back("tls.client_crl_file needs tls.client_ca_file");
    if (!config.roles.clients.empty()) found.emplace_back("tls.clients needs tls.client_ca_file");
    return found;
}

}  // namespace

Result<Config> load_config(ConfigPaths const& paths) {
    Config config;
    std::vector<Violation> violations;
    auto const missing = paths.named ? Missing::refused : Missing::allowed;
    read_config_file(paths.file, missing, config, violations);
    for (auto const& file : toml_files(paths.folder, violations))
        read_config_file(file, Missing::refused, config, violations);
    if (violations.empty())
        for (auto& wrong : contradictions(config))
            violations.push_back({paths.file, std::move(wrong)});
    VFMGR_CHECK(none_of(std::move(violations)));
    return config;
}

Result<void> check_named(Config const& config) {
    std::vector<Violation> violations;
    auto const check_group = [&](std::string const& setting, std::string const& name) {
        if (!resolve_roles({{name, Role::viewer}}, {}).unknown_groups.empty())
            violations.push_back({setting, fmt::format("this host has no group '{}'", name)});
    };
    check_group("listen.unix.group", config.unix_socket.group);
    for (auto const& [name, role] : config.roles.groups) check_group("roles.groups." + name, name);
    if (auto const usable = http::check_certificate(tls_listen(config.tls)); !usable)
        violations.push_back({"listen.tls", detail_with_causes(usable.error())});
    return none_of(std::move(violations));
}

}  // namespace vfmgr
