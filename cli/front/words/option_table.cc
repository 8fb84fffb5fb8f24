// SPDX-License-Identifier: Apache-2.0
#include "cli/front/words/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace hvd::cli {
namespace {

constexpr const char* kUsage =
    "Starts a data-parallel program, one process a rank, on this host or on many:\n"
    "\n"
    "  hvdrun -np 4 python train.py\n"
    "  hvdrun -np 8 -H host1:4,host2:4 python train.py\n"
    "\n"
    "Usage: hvdrun [-np N] [options] [--] command [arguments]\n"
    "Options end at the first word of the command.\n";

constexpr const char* kFooter =
    "Exit codes:\n"
    "  0    every rank has ended well, and all output is written\n"
    "  1    output or files that were asked for are not whole; or as a rank says\n"
    "  N    the code of the rank that failed, or 128 + the signal that killed it\n"
    "  2    a command line that cannot be run\n"
    "  124  a time limit (--timeout, a stall)\n"
    "  125  a host is lost or cannot start, or hvdrun itself failed\n"
    "  126  the command cannot be executed, 127 it is not found\n"
    "  130  Ctrl-C, 143 TERM, 129 the terminal is gone";

constexpr const char* kPairType = "LOW HIGH";

// Names with one dash and more than one letter, which CLI11 cannot have.
struct Alias {
  const char* typed;
  const char* canonical;
};
constexpr std::array<Alias, 8> kAliases = {{
    {"-np", "--num-proc"},
    {"--np", "--num-proc"},
    {"-host", "--hosts"},
    {"--host", "--hosts"},
    {"-hostfile", "--hostfile"},
    {"-machinefile", "--hostfile"},
    {"-cb", "--check-build"},
    {"-prefix-timestamp", "--prefix-timestamp"},
}};

std::string CanonicalName(const CLI::Option& option) { return "--" + option.get_lnames().front(); }

// Every spelling of an option, the shortest first.
std::vector<std::string> SpellingsOf(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const Alias& alias : kAliases) {
    if (CanonicalName(option) == alias.canonical) all.push_back(alias.typed);
  }
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  std::stable_sort(all.begin(), all.end(),
                   [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  return all;
}

// Lists the spellings that CLI11 does not know of.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(38); }
  std::string make_option_name(const CLI::Option* option, bool) const override {
    std::string names;
    for (const std::string& name : SpellingsOf(*option))
      names += (names.empty() ? "" : ", ") + name;
    return names;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_items_expected_max() == 0 ? "" : " " + option->get_type_name();
  }
  std::string make_usage(const CLI::App*, std::string) const override { return ""; }
};

}  // namespace

struct OptionTable::Parser {
  CLI::App app{kUsage, "hvdrun"};
  OptionTexts texts;

  // One text; the last mention wins, so that a script's defaults can be overridden.
  CLI::Option* Text(const char* names, std::string* field, const char* type, const char* help) {
    return app.add_option(names, *field, help)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  CLI::Option* Texts(const char* names, std::vector<std::string>* field, const char* type,
                     const char* help) {
    return app.add_option(names, *field, help)
        ->type_name(type)
        ->type_size(1)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  void Flag(const char* names, bool* field, const char* help, const char* group) {
    app.add_flag(names, *field, help)->group(group);
  }

  Parser();
  void DeclareHosts();
  void DeclareElastic();
  void DeclareTimes();
  void DeclareWorkers();
  void DeclareSettings();
  void DeclareQuestions();
};

void OptionTable::Parser::DeclareHosts() {
  const char* group = "Where";
  Text("-n,--num-proc", &texts.np, "N", "how many ranks; else one for every slot of the hosts")
      ->group(group);
  Texts("-H,--hosts", &texts.hosts, "LIST", "hosts and slots: host1:4,user@node[1-8]:2,[fe80::1]:4")
      ->group(group);
  Texts("--hostfile,--machinefile", &texts.hostfile, "FILE",
        "the same, a host a line; else $HVD_HOSTFILE, the scheduler's hosts, this host")
      ->group(group);
  Text("-p,--ssh-port", &texts.ssh_port, "PORT", "for ssh, where the host states none")
      ->group(group);
  Text("-i,--ssh-identity-file", &texts.ssh_identity, "FILE", "ssh's key")->group(group);
  Text("--rsh-agent", &texts.rsh_agent, "CMD",
       "instead of ssh: srun, qrsh, blaunch, kubectl, podman, docker, or a command that gets the "
       "host and what to run")
      ->group(group);
  Text("--prefix", &texts.prefix, "DIR",
       "where hvd is on hosts that have it neither at this path nor on their PATH")
      ->group(group);
}

void OptionTable::Parser::DeclareElastic() {
  const char* group = "Jobs whose members come and go (made by any of the first three)";
  ElasticTexts* elastic = &texts.elastic;
  Text("--min-np,--min-num-proc", &elastic->min_np, "N", "go on with so few ranks (-np)")
      ->group(group);
  Text("--max-np,--max-num-proc", &elastic->max_np, "N",
       "have no more ranks than this (as many as there are slots)")
      ->group(group);
  Text("--host-discovery-script", &elastic->discovery_script, "CMD",
       "prints the hosts now, one a line: host1, host2:4; for the shell, run again and again")
      ->group(group);
  Text("--slots-per-host,--slots", &elastic->slots_per_host, "N",
       "slots of a host for which none are stated (1)")
      ->group(group);
  Text("--discovery-interval", &elastic->discovery_interval, "TIME",
       "how often the script is run, the hostfile read (1s) or Slurm asked (2s)")
      ->group(group);
  Text("--elastic-timeout", &elastic->timeout, "TIME",
       "how long too few ranks are waited for; HOROVOD_ELASTIC_TIMEOUT says the same (600s)")
      ->group(group);
  Text("--reset-limit", &elastic->reset_limit, "N",
       "how often the members may change before the job ends (no limit)")
      ->group(group);
  Text("--blacklist-cooldown-range", &elastic->cooldown_range, kPairType,
       "how long a host that failed is left alone: twice as long each time (10s 600s)")
      ->group(group);
  Text("--membership-change", &elastic->change, "drain|now",
       "at a change ranks go on until their next commit, or go back to the last (drain)")
      ->group(group);
}

void OptionTable::Parser::DeclareTimes() {
  const char* group = "Times (30, 30s, 2m, 1.5h, 500ms)";
  Text("--start-timeout", &texts.start_timeout, "TIME",
       "until all hosts have started (30s); those that are not there yet are waited for so long, "
       "and so are ranks that do not call hvd_init while others wait")
      ->group(group);
  Text("--timeout", &texts.timeout, "TIME", "end the job after this time, exit code 124 (none)")
      ->group(group);
  Text("--lease", &texts.lease, "TIME",
       "how long a silent host is believed alive (10s; 3s where members come and go)")
      ->group(group);
  Text("--grace", &texts.grace, "TIME", "between TERM and KILL; HVD_GRACE says the same (5s)")
      ->group(group);
}

void OptionTable::Parser::DeclareWorkers() {
  const char* group = "Workers";
  Texts("-x,--env", &texts.forwarded, "NAME[=VALUE]",
        "give the workers this variable; 'GLOB*' works too")
      ->group(group);
  Text("--stdin", &texts.stdin_target, "none|all|RANK", "who reads hvdrun's stdin (0)")
      ->group(group);
  Text("--bind", &texts.bind, "cores|none",
       "each rank has cores of its own, or may use all (cores)")
      ->group(group);
  Text("--gpus-per-rank", &texts.gpus_per_rank, "N",
       "each rank sees N GPUs, its own (all of its host); 0: leave CUDA_VISIBLE_DEVICES alone")
      ->group(group);
  Text("--containment", &texts.containment, "auto|namespace|cgroup|subreaper",
       "how nothing is left behind (auto)")
      ->group(group);
  Text("--compat", &texts.compat, "horovod",
       "run a Python program written for Horovod as it is, and take horovodrun's options")
      ->group(group);
  Text("--output-filename", &texts.output, "DIR", "also write DIR/rank.NNNN/{stdout,stderr}")
      ->group(group);
  Flag("--prefix-timestamp,--prefix-output-with-timestamp", &texts.timestamps,
       "the time before each line", group);
  Flag("--report-bindings", &texts.report_bindings, "say which cores and GPUs each rank has",
       group);
  app.add_flag("--verbose", texts.verbose, "say what hvdrun does; twice: with whole command lines")
      ->group(group);
}

void OptionTable::Parser::DeclareSettings() {
  CLI::Option* flag = nullptr;  // the one before
  const SettingOption* before = nullptr;
  for (const SettingOption& option : SettingOptions()) {
    const auto take = [this, &option](const std::string& value) {
      // "64" is in the option's unit, "64K" has one of its own.
      const bool bare = value.empty() || absl::ascii_isdigit(value.back()) || value.back() == '.';
      texts.settings.push_back({&option, bare ? value + option.unit : value, value});
    };
    CLI::Option* declared =
        option.type != nullptr
            ? app.add_option_function<std::string>(option.names, take, option.help)
                  ->type_name(option.type)
                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
            : app.add_flag_callback(
                  option.names, [take] { take(""); }, option.help);
    declared->group("Settings of the workers (HVD_ variables say the same)");
    if (flag != nullptr && option.type == nullptr && before->id == option.id) {
      flag->excludes(declared);
    }
    flag = option.type == nullptr ? declared : nullptr;
    before = &option;
  }
}

void OptionTable::Parser::DeclareQuestions() {
  const char* group = "Questions";
  Flag("--dry-run", &texts.dry_run, "show who would run where, and exit", group);
  Flag("--check-build", &texts.check_build, "show what this installation can do, and exit", group);
  Flag("-v,--version", &texts.version, "print the version, and exit", group);
  Flag("-h,--help", &texts.help, "print this, and exit", group);
}

OptionTable::Parser::Parser() {
  app.set_help_flag();  // CLI11's own would exit the program
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kFooter);
  // As the help lists them.
  DeclareHosts();
  DeclareWorkers();
  DeclareQuestions();
  DeclareTimes();
  DeclareElastic();
  DeclareSettings();
}

OptionTable::OptionTable() : parser_(std::make_unique<Parser>()) {}
OptionTable::~OptionTable() = default;

std::vector<OptionSpelling> OptionTable::Spellings() const {
  std::vector<OptionSpelling> spellings;
  for (const CLI::Option* option : parser_->app.get_options()) {
    for (const std::string& typed : SpellingsOf(*option)) {
      const std::string type = option->get_type_name();
      spellings.push_back({typed, CanonicalName(*option), option->get_items_expected_max() > 0,
                           type == "N" || type == "PORT", type == kPairType});
    }
  }
  return spellings;
}

absl::StatusOr<OptionTexts> OptionTable::Read(const std::vector<std::string>& words) {
  parser_->texts = {};
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  try {
    parser_->app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return parser_->texts;
}

std::string OptionTable::Help() const {
  std::string text = parser_->app.help();
  // CLI11 puts two blank lines before a group.
  for (size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace hvd::cli
