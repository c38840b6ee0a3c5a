/* The calls of src/holdfast/_core/windows.py, in its order and in the other one.
 *
 *   job.exe before|after close|terminate   parent: start "job.exe middle", end its job, tell who lives
 *   job.exe middle NAME                    starts "job.exe last" at once, and waits
 *   job.exe last NAME                      tells its id, sets the event NAME, and waits
 *   job.exe layout                         tells sizes and offsets of what is passed
 *
 * "before" puts the process into the job before it runs. "after" lets it run until the grandchild
 * is there, and puts it into the job then: what is in no job by then never will be.
 *
 * It prints one line: "middle=dead last=dead", or alive.
 */
#include <windows.h>
#include <tlhelp32.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static char self[MAX_PATH];

static void fail(const char *what)
{
    fprintf(stderr, "%s: error %lu\n", what, GetLastError());
    ExitProcess(3);
}

static PROCESS_INFORMATION start(const char *role, const char *name, DWORD flags)
{
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION made;
    char line[2 * MAX_PATH];
    snprintf(line, sizeof line, "\"%s\" %s %s", self, role, name);
    if (!CreateProcessA(self, line, NULL, NULL, FALSE, flags, NULL, NULL, &startup, &made))
        fail("CreateProcess");
    return made;
}

/* As Popen leaves it: the handle of the first thread is closed, so look for the thread. */
static void resume(DWORD pid)
{
    THREADENTRY32 entry = {.dwSize = sizeof entry};
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    int resumed = 0;
    if (snapshot == INVALID_HANDLE_VALUE)
        fail("CreateToolhelp32Snapshot");
    for (BOOL more = Thread32First(snapshot, &entry); more; more = Thread32Next(snapshot, &entry)) {
        if (entry.th32OwnerProcessID == pid) {
            HANDLE thread = OpenThread(THREAD_SUSPEND_RESUME, FALSE, entry.th32ThreadID);
            if (thread && ResumeThread(thread) != (DWORD)-1)
                resumed++;
            CloseHandle(thread);
        }
    }
    CloseHandle(snapshot);
    if (resumed != 1)
        fail("one thread should have been resumed");
}

static HANDLE new_job(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    HANDLE job = CreateJobObjectW(NULL, NULL);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    if (!job || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits))
        fail("CreateJobObject");
    return job;
}

static void put_into(HANDLE job, DWORD pid)
{
    HANDLE process = OpenProcess(PROCESS_SET_QUOTA | PROCESS_TERMINATE, FALSE, pid);
    if (!process || !AssignProcessToJobObject(job, process))
        fail("AssignProcessToJobObject");
    CloseHandle(process);
}

static DWORD members(HANDLE job)
{
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION facts = {0};
    QueryInformationJobObject(job, JobObjectBasicAccountingInformation, &facts, sizeof facts, NULL);
    return facts.ActiveProcesses;
}

/* The grandchild writes its id into shared memory, and then sets the event. */
static int parent(int before, const char *end, const char *name)
{
    char shared[64];
    snprintf(shared, sizeof shared, "%s-pid", name);
    HANDLE ready = CreateEventA(NULL, TRUE, FALSE, name);
    HANDLE memory = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, 4096, shared);
    DWORD *pid = MapViewOfFile(memory, FILE_MAP_ALL_ACCESS, 0, 0, 4096);
    HANDLE job = new_job();
    PROCESS_INFORMATION middle = start("middle", name, CREATE_SUSPENDED | CREATE_NO_WINDOW);
    CloseHandle(middle.hThread);
    if (before)
        put_into(job, middle.dwProcessId);
    if (WaitForSingleObject(ready, 200) != WAIT_TIMEOUT)
        fail("a suspended process ran");
    resume(middle.dwProcessId);
    if (WaitForSingleObject(ready, 60000) != WAIT_OBJECT_0)
        fail("the grandchild did not start");
    HANDLE last = OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, *pid);
    if (!last)
        fail("OpenProcess");
    if (!before)
        put_into(job, middle.dwProcessId);
    DWORD count = members(job);
    if (!strcmp(end, "close"))
        CloseHandle(job);
    else
        TerminateJobObject(job, 1);
    int middle_dead = WaitForSingleObject(middle.hProcess, 10000) == WAIT_OBJECT_0;
    int last_dead = WaitForSingleObject(last, before ? 10000 : 1000) == WAIT_OBJECT_0;
    printf("members=%lu middle=%s last=%s\n", count, middle_dead ? "dead" : "alive", last_dead ? "dead" : "alive");
    TerminateProcess(middle.hProcess, 0);
    TerminateProcess(last, 0);
    return 0;
}

int main(int count, char **words)
{
    GetModuleFileNameA(NULL, self, sizeof self);
    if (count == 3 && !strcmp(words[1], "middle")) {
        PROCESS_INFORMATION last = start("last", words[2], CREATE_NO_WINDOW);
        WaitForSingleObject(last.hProcess, 120000);
        return 0;
    }
    if (count == 3 && !strcmp(words[1], "last")) {
        char shared[64];
        snprintf(shared, sizeof shared, "%s-pid", words[2]);
        HANDLE memory = OpenFileMappingA(FILE_MAP_ALL_ACCESS, FALSE, shared);
        DWORD *pid = MapViewOfFile(memory, FILE_MAP_ALL_ACCESS, 0, 0, 4096);
        *pid = GetCurrentProcessId();
        SetEvent(OpenEventA(EVENT_MODIFY_STATE, FALSE, words[2]));
        Sleep(120000);
        return 0;
    }
    if (count == 3 && (!strcmp(words[1], "before") || !strcmp(words[1], "after"))) {
        char name[64];
        snprintf(name, sizeof name, "holdfast-%lu", GetCurrentProcessId());
        return parent(!strcmp(words[1], "before"), words[2], name);
    }
    if (count == 2 && !strcmp(words[1], "layout")) {
        printf("ExtendedLimits %u LimitFlags %u JobMemoryLimit %u ",
               (unsigned)sizeof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION),
               (unsigned)offsetof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION, BasicLimitInformation.LimitFlags),
               (unsigned)offsetof(JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobMemoryLimit));
        printf("BasicAccounting %u ActiveProcesses %u ",
               (unsigned)sizeof(JOBOBJECT_BASIC_ACCOUNTING_INFORMATION),
               (unsigned)offsetof(JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, ActiveProcesses));
        printf("ThreadEntry %u th32OwnerProcessID %u\n", (unsigned)sizeof(THREADENTRY32),
               (unsigned)offsetof(THREADENTRY32, th32OwnerProcessID));
        return 0;
    }
    fprintf(stderr, "usage: job.exe before|after close|terminate\n");
    return 2;
}
