//! Which shell runs a Codex hook: the one of the user's passwd entry where it is bash, zsh or sh, else bash.

use std::path::Path;

use sluice_harness::seam::host_files::HostFiles;

/// The shells that are taken from a passwd entry as they stand.
const SUITABLE: &[&str] = &["bash", "zsh", "sh"];

/// The shell of a user: `$SHELL` plays no part in this dialect. Falls back to `/bin/bash`, then to `sh`.
pub async fn codex_shell(files: &dyn HostFiles, uid: u32) -> String {
    let passwd = files.read(Path::new("/etc/passwd")).await.unwrap_or_default();
    if let Some(shell) = login_shell(&String::from_utf8_lossy(&passwd), uid)
        && files.kind(Path::new(&shell)).await.is_some()
    {
        return shell;
    }
    if files.kind(Path::new("/bin/bash")).await.is_some() {
        return "/bin/bash".to_owned();
    }
    "/bin/sh".to_owned()
}

fn login_shell(passwd: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let shell = passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&uid.as_str())).then(|| fields.get(6).copied().unwrap_or_default().to_owned())
    })?;
    let name = shell.rsplit('/').next().unwrap_or_default();
    SUITABLE.contains(&name).then_some(shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passwd_shell_is_taken_only_when_it_suits() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nd:x:7:7::/d:/bin/dash\nn:x:8:8::/n:/usr/sbin/nologin\n";
        assert_eq!(login_shell(passwd, 0), Some("/bin/bash".to_owned()));
        assert_eq!(login_shell(passwd, 7), None);
        assert_eq!(login_shell(passwd, 8), None);
        assert_eq!(login_shell(passwd, 9), None);
    }
}
