"""The files that people write: study.yaml, site.yaml, coordinator.yaml. Every mistake with its line.

study_file, yaml_lines, mistakes    read and write a settings file
pinning                             what the code sets of a study mean, written into it
study_changes                       what differs between two versions of a study
house, site, scores                 what a house says about itself; secrets are only named
site_init, coordinator_init         a first file from a few answers
"""
